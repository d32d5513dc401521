/*
 * What masking costs at the least: XOR of a buffer with a 32-bit key, eight bytes at a time, compiled with
 * `cc -O3`. `make bench` runs it beside our own loop.
 *
 * xor BYTES OFFSET MILLISECONDS prints nanoseconds for each call, for a buffer that begins OFFSET bytes
 * after a 64-byte boundary.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH_BYTES = 1 << 20 };

__attribute__((noinline)) static void mask(unsigned char *bytes, size_t len, const unsigned char key[8]) {
    uint64_t wide;
    memcpy(&wide, key, 8);
    size_t at = 0;
    for (; at + 8 <= len; at += 8) {
        uint64_t word;
        memcpy(&word, bytes + at, 8);
        word ^= wide;
        memcpy(bytes + at, &word, 8);
    }
    for (; at < len; at++)
        bytes[at] ^= key[at % 8];
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    size_t len = strtoul(argv[1], NULL, 10), offset = strtoul(argv[2], NULL, 10);
    double wanted_ns = strtod(argv[3], NULL) * 1e6;
    unsigned char *buffer = aligned_alloc(64, (len + offset + 127) / 64 * 64);
    if (!buffer)
        return 1;
    memset(buffer, 0x5a, len + offset);
    const unsigned char key[8] = {0x37, 0xfa, 0x21, 0x3d, 0x37, 0xfa, 0x21, 0x3d};
    size_t batch = BATCH_BYTES / (len + 1) + 1;
    double calls = 0, started = 0, spent = -1;
    /* The first batch warms up and is not counted. */
    for (; spent < wanted_ns; spent = now_ns() - started) {
        for (size_t i = 0; i < batch; i++) {
            mask(buffer + offset, len, key);
            __asm__ volatile("" ::: "memory");
        }
        if (started == 0)
            started = now_ns();
        else
            calls += batch;
    }
    printf("%.3f\n", spent / calls);
}
