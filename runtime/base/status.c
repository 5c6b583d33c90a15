/* status.c - exit codes and texts of statuses, from status.def. */
#include "runtime/base/status.h"

typedef struct status_row {
    int exit_code;
    const char *text;
} status_row;

static const status_row rows[TL_STATUS_COUNT] = {
    [TL_OK] = {0, "success"},
#define STATUS(name, exit_code, text) [TL_##name] = {exit_code, text},
#include "runtime/base/status.def"
};

int tl_status_exit_code(tl_status status)
{
    if (status < 0 || status >= TL_STATUS_COUNT) {
        return rows[TL_ERR_INTERNAL].exit_code;
    }
    return rows[status].exit_code;
}

const char *tl_status_text(tl_status status)
{
    if (status < 0 || status >= TL_STATUS_COUNT) {
        return "unknown status";
    }
    return rows[status].text;
}
