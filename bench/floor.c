/* The least that a broker on one thread can do for Produce and Fetch: its system calls, and nothing else.
 *
 *     floor PORT produce FILE BATCH_BYTES ANSWER_BYTES
 *     floor PORT fetch   FILE BODY_BYTES  HEAD_BYTES
 *
 * produce: what one round of epoll has brought goes into FILE with one pwritev, then each request gets its answer. The
 * batch is taken from the end of the frame (three bytes of tags follow it). At 256 MB the next file begins.
 * fetch: each request is answered with a head, BODY_BYTES of FILE by sendfile, one piece after the other, and a tail.
 * Nothing is decoded, checked, indexed or counted. Answers are zeros behind their length, which is a success.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CONNECTIONS = 1024, BUFFER = 4 << 20, ROUND = 256, SEGMENT = 256 << 20, TAIL = 3 };

struct connection {
    char *buffer;
    size_t used;
};

static struct connection connections[CONNECTIONS];
static struct iovec gathered[ROUND];
static int senders[ROUND];
static int count;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void send_all(int fd, const char *data, size_t size, int flags)
{
    while (size) {
        ssize_t sent = send(fd, data, size, flags | MSG_NOSIGNAL);
        if (sent < 0)
            return; /* the client is gone: epoll will say so */
        data += sent;
        size -= (size_t)sent;
    }
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: floor PORT produce|fetch FILE BYTES ANSWER_BYTES\n");
        return 2;
    }
    int produces = !strcmp(argv[2], "produce");
    size_t body = (size_t)atol(argv[4]), head = (size_t)atol(argv[5]);
    size_t whole = produces ? head : head + body + TAIL;
    char *answer = calloc(1, head), tail[TAIL] = {0}, name[4096];
    *(uint32_t *)answer = htonl((uint32_t)(whole - 4));

    int file = open(argv[3], produces ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY, 0600);
    struct stat about;
    if (file < 0 || fstat(file, &about))
        die(argv[3]);
    off_t end = about.st_size, position = 0;
    int segments = 0, listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    int send_bytes = 102400; /* Kafka's socket.send.buffer.bytes: what is sent is read while the cache has it */
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 128))
        die("listen");
    int poll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[ROUND];
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);

    for (;;) {
        int ready = epoll_wait(poll, events, ROUND, -1);
        count = 0;
        for (int i = 0; i < ready; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                int accepted = accept(listener, NULL, NULL);
                if (accepted < 0 || accepted >= CONNECTIONS)
                    die("accept");
                setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                setsockopt(accepted, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof send_bytes);
                if (!connections[accepted].buffer && !(connections[accepted].buffer = malloc(BUFFER)))
                    die("malloc");
                connections[accepted].used = 0;
                event.data.fd = accepted;
                epoll_ctl(poll, EPOLL_CTL_ADD, accepted, &event);
                continue;
            }
            struct connection *from = &connections[fd];
            ssize_t got = recv(fd, from->buffer + from->used, BUFFER - from->used, MSG_DONTWAIT);
            if (got < 0 && (errno == EAGAIN || errno == EINTR))
                continue;
            if (got <= 0) {
                close(fd);
                continue;
            }
            from->used += (size_t)got;
            size_t at = 0;
            while (from->used - at >= 4 && count < ROUND) {
                size_t size = 4 + ntohl(*(uint32_t *)(from->buffer + at));
                if (from->used - at < size)
                    break;
                at += size;
                senders[count] = fd;
                if (produces)
                    gathered[count] = (struct iovec){from->buffer + at - TAIL - body, body};
                count++;
            }
            /* What is left is part of a frame; what was gathered is written before the buffer is read into again. */
            if (at && at < from->used && produces && count) {
                if (pwritev(file, gathered, count, position) < 0)
                    die("pwritev");
                position += (off_t)(body * (size_t)count);
                for (int n = 0; n < count; n++)
                    send_all(senders[n], answer, head, 0);
                count = 0;
            }
            memmove(from->buffer, from->buffer + at, from->used - at);
            from->used -= at;
        }
        if (produces && count) {
            if (pwritev(file, gathered, count, position) < 0)
                die("pwritev");
            position += (off_t)(body * (size_t)count);
        }
        for (int n = 0; n < count; n++) {
            if (produces) {
                send_all(senders[n], answer, head, 0);
                continue;
            }
            if (position + (off_t)body > end)
                position = 0;
            send_all(senders[n], answer, head, MSG_MORE);
            off_t stop = position + (off_t)body;
            while (position < stop)
                if (sendfile(senders[n], file, &position, (size_t)(stop - position)) <= 0)
                    break;
            position = stop;
            send_all(senders[n], tail, TAIL, 0);
        }
        if (produces && position >= SEGMENT) {
            close(file);
            snprintf(name, sizeof name, "%s.%d", argv[3], ++segments);
            if ((file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600)) < 0)
                die(name);
            position = 0;
        }
    }
}
