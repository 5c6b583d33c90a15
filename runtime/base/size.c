/* size.c - sizes as text. */
#include "runtime/base/size.h"

#include <stdio.h>

tl_bytes_text tl_bytes_str(size_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB",
                                        "EiB"};
    tl_bytes_text res;
    double value = (double)bytes / 1024;
    int unit = 0;

    if (bytes < 1024) {
        snprintf(res.s, sizeof(res.s), "%zu bytes", bytes);
        return res;
    }
    for (; value >= 1023.95 && unit < 5; unit++) {
        value /= 1024;
    }
    snprintf(res.s, sizeof(res.s), value < 99.95 ? "%.1f %s" : "%.0f %s",
             value, units[unit]);
    return res;
}
