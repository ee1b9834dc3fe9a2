# Thin words over the CMake presets. 'make demo' and 'make test' do all the set-up themselves.

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 300

PREFIX ?= /usr/local
PORT ?= 8080

.PHONY: help demo test serve build setup install deb bench asan tsan fuzz torture tidy format clean

help:
	@echo "make demo     set up, build, and show what Kibitz can do"
	@echo "make test     set up, build, and run every test"
	@echo "make serve    set up, build, and open the page on http://127.0.0.1:$(PORT)"
	@echo "make install  install the program, its models, the C++ library and the Python module below PREFIX=$(PREFIX)"
	@echo "make deb      Debian packages for any x86-64-v2 machine, fast on newer ones, in build-portable"
	@echo "make bench    run the benches (QUICK=1: under a minute each)"
	@echo "make asan     run the tests under AddressSanitizer and UBSan; make tsan likewise"
	@echo "make fuzz     fuzz each target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make torture  faults, kills, fuzzing and sanitizers: about 3 hours, prints a table (docs/RELIABILITY.md)"
	@echo "make tidy     clang-tidy over our code"
	@echo "make format   clang-format in place"

setup:
	@scripts/setup

build: setup
	@test -f build/build.ninja || cmake --preset release
	@cmake --build --preset release -j $(JOBS)

# Builds the one program first, so that there is something to see early.
demo: setup
	@test -f build/build.ninja || cmake --preset release
	@cmake --build --preset release -j $(JOBS) --target kibitz
	@scripts/demo

# All models that ship, and the small decoder of the tests.
serve: setup
	@test -f build/build.ninja || cmake --preset release
	@cmake --build --preset release -j $(JOBS) --target kibitz
	@build/kibitz serve --port $(PORT) --models models --models tests/golden/decoder/tiny.pt --runs checkpoints \
	  --data examples --data data --engines stockfish

test: build
	@scripts/test release -j $(JOBS)

install: setup
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) > build-configure.tmp || { cat build-configure.tmp; exit 1; }
	@cmake --build --preset release -j $(JOBS) --target kibitz_installed
	@cmake --install build --prefix $(PREFIX)

deb:
	@scripts/setup scripts/debian-packages-deb.txt
	cmake --preset portable -DKIBITZ_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr
	cmake --build --preset portable -j $(JOBS) --target kibitz_installed
	cd build-portable && cpack

bench: build
	@scripts/bench $(if $(QUICK),--quick)

asan tsan: setup
	cmake --preset $@
	cmake --build --preset $@ -j $(JOBS)
	scripts/test $@ -j $(JOBS)

fuzz:
	@scripts/setup scripts/debian-packages-clang.txt
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS) --target tests/fuzz/all
	@scripts/fuzz $(FUZZ_SECONDS)

torture: build
	@scripts/setup scripts/debian-packages-clang.txt
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS) --target tests/fuzz/all
	@for preset in asan tsan; do cmake --preset $$preset && cmake --build --preset $$preset -j $(JOBS) || exit 1; done
	@scripts/torture

tidy: build
	@scripts/setup scripts/debian-packages-clang.txt
	@scripts/tidy

format: setup
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

clean:
	rm -rf build build-asan build-tsan build-fuzz build-portable build-torture
