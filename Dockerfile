# Both programs in one image: `millpond` is what it runs, `hoglaked` is beside it.
#
#     docker build -t millpond .
#     docker run --rm millpond config

FROM debian:12-slim AS build
WORKDIR /source
COPY . .
RUN apt-get update && apt-get install -y --no-install-recommends make \
    && make install DESTDIR=/image && strip /image/usr/local/bin/*

FROM debian:12-slim
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates \
        libcurl4 libgnutls30 libjansson4 liblz4-1 libmicrohttpd12 libpq5 librdkafka1 libsnappy1v5 \
        libsqlite3-0 libssl3 libxxhash0 libzstd1 zlib1g \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /image/usr/local/bin/ /usr/local/bin/
USER 65532:65532
EXPOSE 8000
ENTRYPOINT ["millpond"]
