/* Filter programs in fewer instructions: every call must be decided as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <linux/seccomp.h>

#include "box/shrink.h"

#define WORDS (sizeof(struct seccomp_data) / 4)

/* What the kernel does with a program, for the instructions that filters are made of. */
static uint32_t run(const struct sock_fprog *p, const uint32_t data[WORDS])
{
    uint32_t a = 0;

    for (unsigned at = 0; at < p->len; at++) {
        const struct sock_filter *i = &p->filter[at];
        switch (i->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            a = data[i->k / 4];
            break;
        case BPF_ALU | BPF_AND | BPF_K:
            a &= i->k;
            break;
        case BPF_JMP | BPF_JA:
            at += i->k;
            break;
        case BPF_JMP | BPF_JEQ | BPF_K:
            at += a == i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            at += a > i->k ? i->jt : i->jf;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            at += a >= i->k ? i->jt : i->jf;
            break;
        case BPF_RET | BPF_K:
            return i->k;
        default:
            fail_msg("instruction %u has code %#x", at, i->code);
        }
    }
    fail_msg("the program has no end");
    return 0;
}

/* Near the constants that programs here have, and at the ends of what there is. */
static uint32_t some_value(void)
{
    static const uint32_t ends[] = {0, 0x3fffffff, 0x40000000, 0x7fffffff, 0xfffffffe, 0xffffffff};

    return rand() % 8 ? (uint32_t)rand() % 24 : ends[(size_t)rand() % 6];
}

static struct sock_filter some_instruction(unsigned left)
{
    static const uint16_t jumps[] = {BPF_JEQ, BPF_JEQ, BPF_JGT, BPF_JGE};
    unsigned far = left < 200 ? left : 200;

    switch (rand() % 8) {
    case 0:
        return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                            4 * ((uint32_t)rand() % WORDS));
    case 1:
        return (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, some_value());
    case 2:
        return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (uint32_t)rand() % 3);
    case 3:
        return (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)rand() % far);
    default:
        return (struct sock_filter)BPF_JUMP((uint16_t)(BPF_JMP | BPF_K | jumps[rand() % 4]),
                                            some_value(), (uint8_t)((unsigned)rand() % far),
                                            (uint8_t)((unsigned)rand() % (far < 3 ? far : 3)));
    }
}

static void any_program_decides_as_before(void **state)
{
    struct sock_filter code[120];
    struct sock_fprog old = {.filter = code}, shorter;
    uint32_t data[WORDS];
    unsigned shrunk = 0;
    (void)state;

    srand(7);
    for (int round = 0; round < 5000; round++) {
        old.len = (unsigned short)(5 + rand() % 100);
        code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
        for (unsigned i = 1; i + 1 < old.len; i++)
            code[i] = some_instruction(old.len - i - 1U);
        code[old.len - 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 3);
        if (!shrink_program(&old, &shorter))
            continue;
        shrunk++;
        assert_true(shorter.len < old.len);
        for (int k = 0; k < 200; k++) {
            for (size_t w = 0; w < WORDS; w++)
                data[w] = some_value();
            assert_int_equal(run(&old, data), run(&shorter, data));
        }
        free(shorter.filter);
    }
    assert_true(shrunk > 1000);
}

static void numbers_become_ranges(void **state)
{
    struct sock_filter code[102];
    struct sock_fprog old = {.len = 102, .filter = code}, shorter;
    (void)state;

    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    for (unsigned i = 0; i < 99; i++) /* 10 to 108, but for what is in the way of a single range */
        code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, i == 50 ? 9 : 10 + i,
                                                   (uint8_t)(99 - i), 0);
    code[100] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 1);
    code[101] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 2);
    assert_true(shrink_program(&old, &shorter));
    assert_int_equal(shorter.len, 1 + 4 + 2);
    for (uint32_t nr = 0; nr < 200; nr++)
        assert_int_equal(run(&old, (uint32_t[WORDS]){nr}), run(&shorter, (uint32_t[WORDS]){nr}));
    free(shorter.filter);
}

static void what_is_not_understood_stays(void **state)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 1, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 1),
        BPF_STMT(BPF_RET | BPF_K, 2),
    };
    struct sock_fprog old = {.len = 4, .filter = code}, shorter;
    (void)state;

    assert_false(shrink_program(&old, &shorter));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_program_decides_as_before),
        cmocka_unit_test(numbers_become_ranges),
        cmocka_unit_test(what_is_not_understood_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
