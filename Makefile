# Short on purpose: Meson knows how to build, tools/setup what is needed, tests/run how to test.
#
#   make            build/millpond and build/hoglaked
#   make demo       the whole pipeline on this machine, and its rows read back with DuckDB
#   make hoglaked-demo   hoglaked, PostgreSQL and an S3 server; pyhoglake appends and scans
#   make test       every test; ends with a line "N passed, N failed"
#   make install    into PREFIX (default /usr/local), below DESTDIR

PREFIX ?= /usr/local

all: build/build.ninja
	@ninja -C build millpond hoglaked

build/build.ninja: meson.build
	@command -v meson >/dev/null || tools/setup build
	@meson setup build -Doptimization=3 >build.log 2>&1 || \
	    { cat build.log; echo "tools/setup build installs what is missing"; exit 1; }
	@rm -f build.log

demo:
	@tools/demo

hoglaked-demo:
	@tools/hoglaked-demo

test:
	@tools/setup test
	@tests/run

test-asan:
	@tests/run asan

test-tsan:
	@tests/run tsan

fuzz-smoke:
	@tests/run fuzz

bench: all
	@tools/bench

bench-kafka: all
	@tools/setup test
	@MP_BUILD_DIR=$(CURDIR)/build MILLPOND=$(CURDIR)/build/millpond build/env/venv/bin/python bench/kafka.py $(ARGS)

bench-hoglaked: all
	@tools/setup hoglaked
	@ninja -C build tests/server/hoglaked-bench >/dev/null
	@build/env/pyhoglake/bin/python bench/hoglaked.py $(ARGS)

format-check:
	@tools/format --check

install: all
	@meson setup --reconfigure build -Dprefix=$(PREFIX) >/dev/null
	@meson install -C build --no-rebuild --destdir "$(DESTDIR)"

# Keeps what tools/setup fetched; distclean does not.
clean:
	@[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name env -exec rm -rf {} +

distclean:
	@rm -rf build

.PHONY: all demo hoglaked-demo test test-asan test-tsan fuzz-smoke bench bench-kafka bench-hoglaked format-check install clean distclean
