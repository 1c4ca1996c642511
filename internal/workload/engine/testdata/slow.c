// Makes the reads, writes and syncs of a program take a known time: SLOW_MICROSECONDS each, or SLOW_RARELY_MICROSECONDS for every
// SLOW_EVERY-th. Only files with SLOW_PATH in their path are slow, and only from SLOW_FROM to SLOW_TO in them, if these are given.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static atomic_long calls;

static long number(const char *name) {
	const char *text = getenv(name);
	return text ? atol(text) : 0;
}

static void wait_for(int fd, off64_t at) {
	char link[64], path[PATH_MAX];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof path - 1);
	const char *wanted = getenv("SLOW_PATH");
	if (length < 0 || !wanted || (path[length] = 0, !strstr(path, wanted)))
		return;
	if (getenv("SLOW_TO") && (at < number("SLOW_FROM") || at >= number("SLOW_TO")))
		return;
	long every = number("SLOW_EVERY"), microseconds = number("SLOW_MICROSECONDS");
	if (every > 0 && atomic_fetch_add(&calls, 1) % every == every - 1)
		microseconds = number("SLOW_RARELY_MICROSECONDS");
	if (microseconds <= 0)
		return;
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	long long then = until.tv_nsec + microseconds * 1000LL;
	until.tv_sec += then / 1000000000LL;
	until.tv_nsec = then % 1000000000LL;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
	}
}

#define SLOW(result, name, parameters, arguments, kind, place)                                                                              \
	result name parameters {                                                                                                                \
		static result(*real) parameters;                                                                                                    \
		if (!real)                                                                                                                          \
			real = (result(*) parameters)dlsym(RTLD_NEXT, #name);                                                                           \
		const char *kinds = getenv("SLOW_KINDS");                                                                                           \
		if (kinds && strchr(kinds, kind))                                                                                                   \
			wait_for(fd, place);                                                                                                            \
		return real arguments;                                                                                                              \
	}

SLOW(ssize_t, pread, (int fd, void *to, size_t bytes, off_t at), (fd, to, bytes, at), 'r', at)
SLOW(ssize_t, pread64, (int fd, void *to, size_t bytes, off64_t at), (fd, to, bytes, at), 'r', at)
SLOW(ssize_t, pwrite, (int fd, const void *from, size_t bytes, off_t at), (fd, from, bytes, at), 'w', at)
SLOW(ssize_t, pwrite64, (int fd, const void *from, size_t bytes, off64_t at), (fd, from, bytes, at), 'w', at)
SLOW(int, fsync, (int fd), (fd), 's', -1)
SLOW(int, fdatasync, (int fd), (fd), 's', -1)
