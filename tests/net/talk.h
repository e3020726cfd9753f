/* tests/net/talk.h - the client's end of a connection, byte by byte. */
#ifndef MP_TESTS_NET_TALK_H
#define MP_TESTS_NET_TALK_H

#include "harness/test.h"
#include "net/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static inline int dial(const struct mp_http_server *server)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(mp_http_server_port(server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    CHECK(fd >= 0);
    CHECK_INT(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static inline void say(int fd, const char *text)
{
    CHECK_INT(send(fd, text, strlen(text), MSG_NOSIGNAL), (int64_t)strlen(text));
}

#endif
