/*
 * A bare TCP echo: what a byte that comes and goes costs at the least on this machine. `make bench` compiles
 * it with `cc -O2` and measures it beside the server.
 *
 * One thread, level-triggered epoll, one read buffer for all connections, each read answered by one write. What
 * a write leaves over is kept for its connection, which is then not read until all of it has gone.
 *
 * On a second port what one read brings goes to all connections of that port, one write each, its sender's too.
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

/* The connections that get what any of them sends, and by descriptor the place of each among them, from 1. */
static int *members, *places, count;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void watch(int fd, int operation, unsigned events) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(set, operation, fd, &event) < 0)
        fail("epoll_ctl");
}

static void join(int fd) {
    members[count++] = fd;
    places[fd] = count;
}

/* The last one takes its place. */
static void leave(int fd) {
    int last = members[--count];
    members[places[fd] - 1] = last;
    places[last] = places[fd];
    places[fd] = 0;
}

static void drop(int fd) {
    if (places[fd])
        leave(fd);
    free(rests[fd].bytes);
    rests[fd] = (struct rest){0};
    close(fd);
}

/* Returns how much was written, or -1 when the connection is lost. */
static ssize_t put(int fd, const char *bytes, size_t len) {
    ssize_t written = send(fd, bytes, len, MSG_NOSIGNAL);
    return written < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : written;
}

/* Writes, or keeps behind what is kept already. */
static void give(int fd, const char *bytes, size_t len) {
    struct rest *rest = &rests[fd];
    if (!rest->bytes) {
        ssize_t written = put(fd, bytes, len);
        if (written < 0) {
            drop(fd);
            return;
        }
        if ((size_t)written == len)
            return;
        bytes += written;
        len -= written;
        watch(fd, EPOLL_CTL_MOD, EPOLLOUT);
    }
    rest->bytes = realloc(rest->bytes, rest->to + len);
    if (!rest->bytes)
        fail("realloc");
    memcpy(rest->bytes + rest->to, bytes, len);
    rest->to += len;
}

static void on_readable(int fd) {
    ssize_t len = recv(fd, buffer, sizeof buffer, 0);
    if (len < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (len <= 0) {
        drop(fd);
    } else if (places[fd]) {
        /* From the last on: whoever takes the place of one that is dropped has had it already. */
        for (int i = count - 1; i >= 0; i--)
            give(members[i], buffer, len);
    } else {
        give(fd, buffer, len);
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

/* Accepts all who wait, and gives each to `welcome`, if there is one. */
static void on_connections(int listener, int descriptors, void (*welcome)(int)) {
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && errno == EAGAIN)
            return;
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (fd < 0 || fd >= descriptors)
            fail("accept4");
        watch(fd, EPOLL_CTL_ADD, EPOLLIN);
        if (welcome)
            welcome(fd);
    }
}

static int listen_on_a_free_port(const char *service) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int on = 1;
    /* Connections inherit TCP_NODELAY from their listener. */
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) < 0)
        fail("listen");
    printf("tcp %s on 127.0.0.1:%d\n", service, ntohs(address.sin_port));
    fflush(stdout);
    watch(fd, EPOLL_CTL_ADD, EPOLLIN);
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
    members = calloc(descriptors, sizeof *members);
    places = calloc(descriptors, sizeof *places);
    set = epoll_create1(EPOLL_CLOEXEC);
    if (!rests || !members || !places || set < 0)
        fail("start");
    int echo = listen_on_a_free_port("echo");
    int broadcast = listen_on_a_free_port("broadcast");
    for (;;) {
        static struct epoll_event events[EVENTS];
        int ready = epoll_wait(set, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == echo)
                on_connections(echo, descriptors, NULL);
            else if (fd == broadcast)
                on_connections(broadcast, descriptors, join);
            else if (rests[fd].bytes)
                on_writable(fd);
            else
                on_readable(fd);
        }
    }
}
