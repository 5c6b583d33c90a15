/* machine.h - what this process may use of the machine: CPUs and memory,
 * after affinity and control groups (v2, and the v1 hierarchies). */
#ifndef TL_BASE_MACHINE_H
#define TL_BASE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* CPUs of the affinity mask, bounded by the CPU quota rounded up; >= 1. */
int tl_machine_cpus(void);

/* Bytes of physical memory, bounded by the memory limit of the group. */
size_t tl_machine_memory(void);

/* Bytes that could be had now without swapping much out: of the system, and
 * of the group. */
size_t tl_machine_available(void);

/* The smallest quota in CPUs, rounded up, of a group and those above it; 0 if
 * there is none.  `root` is where the hierarchy is mounted (/sys/fs/cgroup)
 * and `groups` the text of /proc/self/cgroup. */
int tl_cgroup_cpus(const char *root, const char *groups);

/* The same for the limit in bytes; SIZE_MAX if there is none. */
size_t tl_cgroup_memory(const char *root, const char *groups);

/* What the limits of the group and of those above it leave now, where page
 * cache counts as free; SIZE_MAX if there is none. */
size_t tl_cgroup_available(const char *root, const char *groups);

#endif
