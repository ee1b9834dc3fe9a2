# Thin words over the CMake presets. 'make demo' and 'make test' do all the set-up themselves.

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 300

.PHONY: help demo test build setup bench asan tsan fuzz tidy format clean

help:
	@echo "make demo     set up, build, and show what Kibitz can do"
	@echo "make test     set up, build, and run every test"
	@echo "make bench    run the benches (QUICK=1: under a minute each)"
	@echo "make asan     run the tests under AddressSanitizer and UBSan; make tsan likewise"
	@echo "make fuzz     fuzz each target for FUZZ_SECONDS=$(FUZZ_SECONDS)"
	@echo "make tidy     clang-tidy over our code"
	@echo "make format   clang-format in place"

setup:
	@scripts/setup

build: setup
	@test -f build/build.ninja || cmake --preset release
	@cmake --build --preset release -j $(JOBS)

demo: build
	@scripts/demo

test: build
	@scripts/test release -j $(JOBS)

bench: build
	@scripts/bench $(if $(QUICK),--quick)

asan tsan: setup
	cmake --preset $@
	cmake --build --preset $@ -j $(JOBS)
	scripts/test $@ -j $(JOBS)

fuzz:
	@scripts/setup scripts/debian-packages-clang.txt
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS)
	@scripts/fuzz $(FUZZ_SECONDS)

tidy: build
	@scripts/setup scripts/debian-packages-clang.txt
	@scripts/tidy

format: setup
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

clean:
	rm -rf build build-asan build-tsan build-fuzz build-portable
