/*
 * A bare TCP echo: what a byte that comes and goes costs at the least on this machine. `make bench` compiles
 * it with `cc -O2` and measures it beside the server.
 *
 * One thread, level-triggered epoll, one read buffer for all connections, each read answered by one write. What
 * a write leaves over is kept for its connection, which is then not read until all of it has gone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 256 << 10, EVENTS = 1024, BACKLOG = 4096 };

/* What a write left over; indexed by descriptor. */
struct rest {
    char *bytes;
    size_t from, to;
};

static int set;
static struct rest *rests;
static char buffer[READ_BYTES];

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void watch(int fd, int operation, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(set, operation, fd, &event) < 0)
        fail("epoll_ctl");
}

static void drop(int fd) {
    free(rests[fd].bytes);
    rests[fd] = (struct rest){0};
    close(fd);
}

/* Returns how much was written, or -1 when the connection is lost. */
static ssize_t put(int fd, const char *bytes, size_t len) {
    ssize_t written = send(fd, bytes, len, MSG_NOSIGNAL);
    return written < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : written;
}

static void on_readable(int fd) {
    ssize_t len = recv(fd, buffer, sizeof buffer, 0);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    ssize_t written = len > 0 ? put(fd, buffer, len) : -1;
    if (written < 0) {
        drop(fd);
    } else if (written < len) {
        char *bytes = malloc(len - written);
        if (!bytes)
            fail("malloc");
        memcpy(bytes, buffer + written, len - written);
        rests[fd] = (struct rest){bytes, 0, len - written};
        watch(fd, EPOLL_CTL_MOD, EPOLLOUT);
    }
}

static void on_writable(int fd) {
    struct rest *rest = &rests[fd];
    ssize_t written = put(fd, rest->bytes + rest->from, rest->to - rest->from);
    if (written < 0) {
        drop(fd);
        return;
    }
    rest->from += written;
    if (rest->from == rest->to) {
        free(rest->bytes);
        *rest = (struct rest){0};
        watch(fd, EPOLL_CTL_MOD, EPOLLIN);
    }
}

static void on_connections(int listener, int descriptors) {
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == EAGAIN)
            return;
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0 || fd >= descriptors)
            fail("accept4");
        watch(fd, EPOLL_CTL_ADD, EPOLLIN);
    }
}

static int listen_on_a_free_port(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int on = 1;
    /* Connections inherit TCP_NODELAY from their listener. */
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        fail("listen");
    printf("tcp echo on 127.0.0.1:%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return fd;
}

int main(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        fail("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        fail("setrlimit");
    int descriptors = (int)limit.rlim_cur;
    rests = calloc(descriptors, sizeof *rests);
    set = epoll_create1(EPOLL_CLOEXEC);
    if (!rests || set < 0)
        fail("start");
    int listener = listen_on_a_free_port();
    watch(listener, EPOLL_CTL_ADD, EPOLLIN);
    for (;;) {
        static struct epoll_event events[EVENTS];
        int ready = epoll_wait(set, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener)
                on_connections(listener, descriptors);
            else if (rests[fd].bytes)
                on_writable(fd);
            else
                on_readable(fd);
        }
    }
}
