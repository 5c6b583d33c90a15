/* replay.c - run a fuzz target on files, without a fuzzer.
 *
 *     replay_eval PATH...      each file, or each file of a folder
 *
 * The kept corpus becomes a test of every build, and counts in the coverage
 * of one by gcc.  Nothing is checked here: the target does that. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST (1 << 16)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int count;

/* Run one file; false if it can't be read. */
static bool replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(MOST);
    size_t size = 0;
    bool good = false;

    if (file != NULL && data != NULL) {
        size = fread(data, 1, MOST, file);
        good = ferror(file) == 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    if (good && size > 0) {
        /* no byte more than it has, so that a sanitizer sees its end */
        uint8_t *exact = realloc(data, size);

        data = exact != NULL ? exact : data;
        count++;
        LLVMFuzzerTestOneInput(data, size);
    }
    free(data);
    return good;
}

/* The same for the files of a folder. */
static bool replay_folder(DIR *folder, const char *path)
{
    bool good = true;
    struct dirent *entry;

    while ((entry = readdir(folder)) != NULL) {
        char name[4096];

        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
        good = replay_file(name) && good;
    }
    return good;
}

int main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        bool good = folder != NULL ? replay_folder(folder, argv[i])
                                   : replay_file(argv[i]);

        if (folder != NULL) {
            closedir(folder);
        }
        if (!good) {
            perror(argv[i]);
            failed++;
        }
    }
    printf("%s: %d passed, %d failed\n", "replay", count, failed);
    return failed != 0 || count == 0;
}
