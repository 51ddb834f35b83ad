# Images of thole. Without a container engine scripts/image makes the same ones.
#   docker build --target thole    -t thole:0.1.0 .           the command `thole` and libthole
#   docker build --target examples -t thole-examples:0.1.0 .  the same, with the example programs
#   docker build --target build    -t thole-build:0.1.0 .     compiler, headers, libthole: for building your own program
# A program of your own, on top of these:
#   FROM thole-build:0.1.0 AS build
#   COPY shop.c .
#   RUN cc -O2 -g -o shop shop.c $(pkg-config --cflags --libs thole)
#   FROM thole:0.1.0
#   COPY --from=build /src/shop /usr/local/bin/shop
#   ENTRYPOINT ["/usr/local/bin/shop"]
ARG DEBIAN=debian:12-slim
FROM ${DEBIAN} AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev cmake make ninja-build pkg-config libnats-dev \
    libprotobuf-c-dev protobuf-c-compiler libpq-dev libssl-dev libmicrohttpd-dev libyaml-dev ca-certificates && rm -rf /var/lib/apt/lists/*
WORKDIR /thole
COPY . .
RUN cmake --preset release && cmake --build --preset release && cmake --install build/release && ldconfig && \
    cmake --install build/release --prefix /prefix
WORKDIR /src

FROM build AS rootfs
RUN /thole/scripts/image-rootfs /rootfs /prefix && \
    /thole/scripts/image-rootfs /rootfs-examples /prefix $(find /thole/build/release/examples -maxdepth 1 -type f -executable)

FROM scratch AS examples
COPY --from=rootfs /rootfs-examples /
USER 65532:65532
ENV PATH=/usr/local/bin

FROM scratch AS thole
COPY --from=rootfs /rootfs /
USER 65532:65532
ENV PATH=/usr/local/bin
ENTRYPOINT ["/usr/local/bin/thole"]
