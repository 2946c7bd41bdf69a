# The front door. Meson builds; everything that is installed is named in tools/packages.
#
#   make             build/retort
#   make environment all that sessions can have: core documents media more fonts, each a target too
#   make run         an example in a box: a table, and a picture in build/example; then a server
#   make test        everything that has to hold
#   make test-vm     of it, what depends on the kernel, under Debian's own in a virtual machine
#   make test-all    what needs the whole environment
#   make soak        three minutes of everything that clients do, and nothing may be left of it
#   make bench       retort beside what you would pick instead, and beside the limit
#   make asan        unit tests and fuzz seeds under the sanitizers
#   make fuzz        a minute for each parser of what a box, a client or a server can send
#   make lint        formatting, static analysis, man pages; make fmt formats
#   make install     the binary, its runner, the man pages, an example of settings, a systemd unit

BUILD ?= build
export PATH := /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

all: setup-core
	@$(MAKE) --no-print-directory compile

compile: configure
	@ninja -C $(BUILD) --quiet

# Also when what the set-up was made from has changed since.
configure: $(BUILD)/build.ninja
	@tools/quietly ninja -C $(BUILD) build.ninja

$(BUILD)/build.ninja:
	@tools/quietly meson setup $(BUILD)

setup-core:
	@tools/install build core fonts

# What sessions find: the groups of tools/packages.
core documents media more fonts:
	@tools/install $@
environment: core documents media more fonts

setup-test: setup-core
	@tools/install test vm
setup-bench: setup-core
	@tools/install bench

# A mock of the models' APIs that others wrote.
setup-test: setup-mock
setup-mock:
	@tests/agent/mock/install

run: all
	@echo '$$ retort run -f examples/cities.csv -o $(BUILD)/example examples/cities.py'
	@$(BUILD)/retort run -f examples/cities.csv -o $(BUILD)/example examples/cities.py
	@echo '$$ retort serve --state $(BUILD)/state'
	@tools/try-serve $(BUILD)/retort $(BUILD)/state

test: setup-test compile
	@tests/run

test-all: setup-test environment compile
	@tests/all

test-vm: setup-test compile
	@tests/vm/all

soak: setup-test compile
	@tests/api/soak.py --retort $(BUILD)/retort

bench: setup-bench compile
	@bench/run

asan:
	@tools/install build core test
	@tests/asan

fuzz:
	@tools/install build core test
	@tests/fuzz/run

lint:
	@tools/install build lint
	@tools/lint

fmt:
	@tools/install lint
	@git ls-files '*.c' '*.h' | xargs clang-format -i

install: all
	@meson install -C $(BUILD)

clean:
	rm -rf $(BUILD) build-asan build-fuzz

.PHONY: all compile configure run core documents media more fonts environment test test-all test-vm soak bench asan fuzz lint fmt install clean \
	setup-core setup-test setup-mock setup-bench
