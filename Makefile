# SPDX-License-Identifier: MIT
#
# The everyday commands. CMakeLists.txt is the build description; this file only calls it.

MODELS := $(or $(SOTTO_MODELS),$(HOME)/.cache/sotto/models)
CLIPS  := /usr/share/pocketsphinx/test/data/librivox
CLIP   := $(CLIPS)/sense_and_sensibility_01_austen_64kb-0870.wav
JOBS   := $(shell getconf _NPROCESSORS_ONLN)
WERROR := OFF

# $(call build,PRESET,WERROR and more options): with ninja where there is one, looked up late since set-up may just have installed it
define build
@command -v ninja >/dev/null && CMAKE_GENERATOR=$${CMAKE_GENERATOR-Ninja} && export CMAKE_GENERATOR; \
cmake --preset $(1) -DSOTTO_WERROR=$(2) --log-level=NOTICE && cmake --build --preset $(1) -j $(JOBS)
endef
CTEST = ctest --output-on-failure --no-tests=error -j $(JOBS)

# ThreadSanitizer needs the address space laid out as it expects; where that may not be asked for, it is tried without
NOASLR := $(shell setarch -R true 2>/dev/null && echo setarch -R)

all: build

build: setup-build
	$(call build,release,$(WERROR))

setup-%:
	@tools/setup $*

# A real recording through a real model
demo: setup-demo build $(MODELS)/base.gguf
	build/sotto transcribe -l en $(CLIP)

# The model that the command line uses by default, made by that command line
$(MODELS)/base.gguf: | build
	tools/fetch-model base
	build/sotto convert $(MODELS)/base-ct2 $@ --type f16

# The same weights in whisper.cpp's container, for peers
$(MODELS)/base.bin: | build
	tools/fetch-model base
	build/sotto convert $(MODELS)/base-ct2 $@ --type f16

# What tests need: packages, Python's packages, the release build, a real model in the forms that they read
testable: setup-test
	@tools/venv
	tools/fetch-model base
	tools/fetch-jfk
	$(call build,release,$(WERROR))
	build/sotto convert $(MODELS)/base-ct2 $(MODELS)/base-f32.gguf --type f32
	build/sotto convert $(MODELS)/base-ct2 $(MODELS)/base.gguf --type f16

# Tests whose outcome may depend on the CPU level
COMPUTE := ^(cpu|kernels|ops|plan|speech|eval|vectors)[.]

# All that a change has to pass: every test in the release build, those that need no large model again under the
# sanitizers, then once more at each lower CPU level. Warnings are errors in the release build alone: under sanitizers
# gcc's guesses about values go wrong.
test: setup-test check testable
	tools/check-symbols build
	$(CTEST) --test-dir build -LE long
	$(call build,san,OFF)
	$(CTEST) --test-dir build-san
	$(call build,tsan,OFF)
	$(NOASLR) $(CTEST) --test-dir build-tsan
	SOTTO_CPU_LEVEL=avx512 $(CTEST) --test-dir build -R '$(COMPUTE)' -LE 'long|base'
	SOTTO_CPU_LEVEL=avx2 $(CTEST) --test-dir build -R '$(COMPUTE)' -LE long
	SOTTO_CPU_LEVEL=c $(CTEST) --test-dir build -R '$(COMPUTE)' -LE 'long|base'

# What takes too long for every change; nightly and before a release
test-long: testable
	$(CTEST) --test-dir build -L long

bench: setup-bench build $(MODELS)/base.gguf $(MODELS)/base.bin
	@tools/venv bench
	@tools/fetch-jfk
	@set -e; for program in gemm open transcribe; do "build/bench/bench_$$program"; done
	@build/bench/bench_quantize "$$(find .venv-bench -name 'libggml-base*.so*' | head -n 1)" $(MODELS)/base.gguf 3 q8_0 q5_0 q4_K
	@.venv-bench/bin/python bench/peers.py

# Libraries, headers, pkg-config files, CMake package and command line: make install [PREFIX=/usr] [DESTDIR=/stage]
install: PREFIX ?= /usr/local
install: setup-build
	$(call build,release,$(WERROR) -DCMAKE_INSTALL_PREFIX="$(PREFIX)")
	DESTDIR="$(DESTDIR)" cmake --install build

format:
	@tools/venv
	@tools/format

check:
	@tools/venv
	tools/format --check
	tools/check-files
	tools/check-includes
	tools/check-headers

clean:
	rm -rf build build-*

.PHONY: all build demo testable test test-long bench install format check clean
.DELETE_ON_ERROR:
.NOTPARALLEL:
