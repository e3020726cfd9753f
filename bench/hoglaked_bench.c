/* bench/hoglaked_bench.c - commits per second of a catalog service, and how long one takes.
 *
 *     hoglaked-bench HOST PORT CATALOG CLIENTS SECONDS [CATALOGS]
 *     hoglaked-bench HOST PORT /PATH CLIENTS SECONDS
 *
 * The first makes the catalog (CATALOG-0, CATALOG-1, ... where CATALOGS is above 1) with one table
 * of two columns, then CLIENTS threads send prepared appends of one file each, on connections that
 * stay open, one request at a time. The second reads the path instead. Prints requests, how many
 * failed, requests per second, p50, p90, p99 and the slowest.
 */
#include "base/env.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SAMPLES_MAX = 1000000, BODY_MAX = 8192 };

struct client {
    pthread_t thread;
    const char *catalog; /* or the path to read */
    int number, fd;
    uint32_t *samples_us;
    uint32_t count, failed;
};

static struct sockaddr_in server_address;
static uint64_t until_us;
static struct mp_env env;

static int dial(void)
{
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&server_address, sizeof(server_address))) {
        perror("connect");
        exit(1);
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* Sends one request and reads its answer; gives the status. */
static int ask(int fd, const char *method, const char *path, const char *body)
{
    char text[BODY_MAX + 512];
    int size = snprintf(text, sizeof(text),
                        "%s %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\n\r\n%s",
                        method, path, strlen(body), body);
    size_t have = 0, wanted = 0;

    if (write(fd, text, (size_t)size) != size)
        return -1;
    while (!wanted || have < wanted) {
        ssize_t got = read(fd, text + have, sizeof(text) - 1 - have);
        const char *end, *length;

        if (got <= 0)
            return -1;
        have += (size_t)got;
        text[have] = 0;
        end = strstr(text, "\r\n\r\n");
        length = strcasestr(text, "content-length:");
        if (end && length)
            wanted = (size_t)(end - text) + 4 + strtoul(length + 15, NULL, 10);
    }
    return atoi(text + 9);
}

static void *commit(void *self)
{
    struct client *client = self;
    char path[200], body[BODY_MAX], key[MP_UUID_TEXT];

    client->fd = dial();
    snprintf(path, sizeof(path), "/v1/catalogs/%s/commit/prepared", client->catalog);
    while (mp_now_mono_us(&env) < until_us && client->count < SAMPLES_MAX) {
        uint64_t began;
        int status;

        mp_uuid7(&env, key);
        snprintf(body, sizeof(body),
                 "{\"idempotency_key\":\"%s\",\"read_snapshot\":2,\"author\":\"bench\",\"appends\":"
                 "[{\"namespace\":\"n\",\"table\":\"t\",\"files\":[{\"path\":"
                 "\"s3://bench/%s/data/n/t/%s/%s-0.parquet\",\"record_count\":1000,"
                 "\"file_size_bytes\":12345,\"footer_size\":700,\"column_stats\":["
                 "{\"field_id\":1,\"value_count\":1000,\"null_count\":0,\"size_bytes\":900,"
                 "\"lower_bound\":\"AQAAAAAAAAA=\",\"upper_bound\":\"AQAAAAAAAAA=\"},"
                 "{\"field_id\":2,\"value_count\":1000,\"null_count\":3,\"size_bytes\":5000,"
                 "\"lower_bound\":\"YQ==\",\"upper_bound\":\"eg==\"}]}]}]}",
                 key, client->catalog, key, key);
        began = mp_now_mono_us(&env);
        status = ask(client->fd, "POST", path, body);
        client->samples_us[client->count++] = (uint32_t)(mp_now_mono_us(&env) - began);
        if (status != 200)
            client->failed++;
    }
    close(client->fd);
    return NULL;
}

static void *get(void *self)
{
    struct client *client = self;

    client->fd = dial();
    while (mp_now_mono_us(&env) < until_us && client->count < SAMPLES_MAX) {
        uint64_t began = mp_now_mono_us(&env);
        int status = ask(client->fd, "GET", client->catalog, "");

        client->samples_us[client->count++] = (uint32_t)(mp_now_mono_us(&env) - began);
        if (status != 200)
            client->failed++;
    }
    close(client->fd);
    return NULL;
}

static void make_catalog(const char *catalog)
{
    char body[BODY_MAX], path[200];
    int fd = dial(), status;

    snprintf(body, sizeof(body), "{\"name\":\"%s\",\"data_path\":\"s3://bench/%s\"}", catalog,
             catalog);
    status = ask(fd, "POST", "/v1/catalogs", body);
    snprintf(path, sizeof(path), "/v1/catalogs/%s/namespaces", catalog);
    if (status == 201)
        status = ask(fd, "POST", path, "{\"name\":\"n\"}");
    snprintf(path, sizeof(path), "/v1/catalogs/%s/namespaces/n/tables", catalog);
    if (status == 201)
        status = ask(fd, "POST", path,
                     "{\"name\":\"t\",\"columns\":[{\"name\":\"id\",\"type\":\"long\"},"
                     "{\"name\":\"name\",\"type\":\"string\"}]}");
    if (status != 201 && status != 409) {
        fprintf(stderr, "catalog %s: status %d\n", catalog, status);
        exit(1);
    }
    close(fd);
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void report(struct client *clients, int count, double seconds)
{
    uint32_t total = 0, failed = 0, at = 0;
    uint32_t *all;

    for (int i = 0; i < count; i++) {
        total += clients[i].count;
        failed += clients[i].failed;
    }
    all = mp_alloc_array(total + 1, sizeof(*all));
    for (int i = 0; i < count; i++) {
        memcpy(all + at, clients[i].samples_us, clients[i].count * sizeof(*all));
        at += clients[i].count;
    }
    qsort(all, total, sizeof(*all), by_size);
    printf("%3d clients: %u requests, %u failed, %.0f/s, p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, "
           "max %.1f ms\n",
           count, total, failed, total / seconds, all[total / 2] / 1e3, all[total * 9 / 10] / 1e3,
           all[total * 99 / 100] / 1e3, all[total ? total - 1 : 0] / 1e3);
    mp_free(all);
}

int main(int argc, char **argv)
{
    int count = argc > 4 ? atoi(argv[4]) : 0, seconds = argc > 5 ? atoi(argv[5]) : 0;
    int catalogs = argc > 6 ? atoi(argv[6]) : 1;
    bool reads = argc > 3 && *argv[3] == '/';
    struct client *clients;
    uint64_t began;

    if (count < 1 || seconds < 1 || catalogs < 1) {
        fprintf(stderr, "usage: hoglaked-bench HOST PORT CATALOG CLIENTS SECONDS [CATALOGS]\n"
                        "       hoglaked-bench HOST PORT /PATH CLIENTS SECONDS\n");
        return 2;
    }
    env = mp_env_real();
    server_address.sin_family = AF_INET;
    server_address.sin_port = htons((uint16_t)atoi(argv[2]));
    inet_pton(AF_INET, argv[1], &server_address.sin_addr);
    clients = mp_alloc_array((size_t)count, sizeof(*clients));
    for (int i = 0; i < count; i++) {
        char *name = mp_alloc(300);

        if (catalogs > 1)
            snprintf(name, 300, "%s-%d", argv[3], i % catalogs);
        else
            snprintf(name, 300, "%s", argv[3]);
        clients[i] = (struct client){
            .catalog = name,
            .number = i,
            .samples_us = mp_alloc_array(SAMPLES_MAX, sizeof(uint32_t)),
        };
        if (i < catalogs && !reads)
            make_catalog(name);
    }
    began = mp_now_mono_us(&env);
    until_us = began + (uint64_t)seconds * 1000000;
    for (int i = 0; i < count; i++)
        pthread_create(&clients[i].thread, NULL, reads ? get : commit, &clients[i]);
    for (int i = 0; i < count; i++)
        pthread_join(clients[i].thread, NULL);
    report(clients, count, (double)(mp_now_mono_us(&env) - began) / 1e6);
    return 0;
}
