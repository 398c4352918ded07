/* What a bundle hides, and what it leaves. */
#include "unit.h"

#include "base/strbuf.h"
#include "doctor/bundle/redact.h"

#include <string.h>

static struct gp_redactor redactor;

static void check(const char *text, const char *expected)
{
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_redact_add(&redactor, &sb, text, strlen(text));
    assert_int_equal(sb.error, 0);
    assert_string_equal(sb.buf, expected);
    gp_strbuf_fini(&sb);
}

static void leaves(const char *text)
{
    check(text, text);
}

static int reset(void **state)
{
    (void)state;
    memset(&redactor, 0, sizeof(redactor));
    return 0;
}

static void test_uuids(void **state)
{
    (void)state;
    check("GPU-b6c3f00d-1234-5678-9abc-def012345678: GPU-B6C3F00D-1234-5678-9ABC-DEF012345678",
          "GPU-00000000-0000-0000-0000-000000000001: GPU-00000000-0000-0000-0000-000000000001");
    check("MIG-GPU-11111111-2222-3333-4444-555555555555/1/0",
          "MIG-GPU-00000000-0000-0000-0000-000000000002/1/0");
    leaves("GPU-b6c3f00d-1234-5678-9abc-def01234567");
    leaves("6.8.0-45-generic, 0000:65:00.0");
}

static void test_serials(void **state)
{
    (void)state;
    gp_redact_serial(&redactor, "1320419012345");
    gp_redact_serial(&redactor, "0");
    check("NVRM: GPU Board Serial Number: 1324523007214\n",
          "NVRM: GPU Board Serial Number: SERIAL\n");
    check("\"serial\": \"A1B2-C3\", serial=77777", "\"serial\": \"SERIAL\", serial=SERIAL");
    check("board 1320419012345, not 13204190123456", "board SERIAL, not 13204190123456");
    check("GPU serial number is 1653723052734.", "GPU serial number is SERIAL.");
    gp_redact_host(&redactor, "zeus7");
    check("serial on zeus7: 1234567", "serial on HOST: SERIAL"); /* what stands between, too */
    leaves("the serial\nnumber: 1234567");
    leaves("serial: no");
}

static void test_addresses(void **state)
{
    (void)state;
    check("from 192.168.1.20:6666 and 8.8.8.8.", "from ADDRESS:6666 and ADDRESS.");
    check("mac 52:54:00:12:34:56 ", "mac ADDRESS ");
    check("fe80::5054:ff:fe12:3456 and 2001:db8::1", "ADDRESS and ADDRESS");
    check("guid 0002:c903:00ab:cdef", "guid ADDRESS");
    check("NCCL_COMM_ID=10.66.77.88:1234 nfsroot=192.168.7.9",
          "NCCL_COMM_ID=ADDRESS:1234 nfsroot=ADDRESS");
    check("http://10.9.8.7/x ::ffff:10.1.2.3 ", "http://HOST/x ADDRESS ");
    check("/etc/modprobe.d/nvidia-10.9.8.7.conf libcudnn8-8.9.7.29",
          "/etc/modprobe.d/nvidia-ADDRESS.conf libcudnn8-8.9.7.29");
    check("https://ada:pw@example.org/simple", "https://LOGIN@example.org/simple");
    check("x 1111:2222:3333:4444:5555:6666:7777:8888:9999:", "x ADDRESS");
    /* longer than an address can be: hidden as far as one can be in it */
    check("x 1111:2222:3333:4444:5555:6666:7777:8888:9999::", "x 1111:ADDRESS");
    leaves("NV_CUDNN_VERSION=9.10.2.21");
    leaves("0000:65:00.0, GPU 00000000:65:00.0, 02:51:24, 0x22:0x56:884");
    leaves("libcublas 12.8.4.1, cudnn: 9.10.2.21, nvidia-cublas-cu12==12.8.4.1");
    leaves("package_1.2.3.4-1, version 1.2.3.4, 1.2.3.4.5, 300.1.2.3");
    leaves("std::string, at::Tensor, sm_90");
}

static void test_names(void **state)
{
    (void)state;
    gp_redact_host(&redactor, "gpu01.example.org");
    gp_redact_user(&redactor, "alice");
    gp_redact_user(&redactor, "nvidia");
    gp_redact_user(&redactor, "x");
    check("Nov 23 gpu01 kernel: on gpu01.example.org: alice", "Nov 23 HOST kernel: on HOST: USER");
    check("/home/bob/venv/lib, /home/alice, /var/home/carol/x",
          "/home/USER/venv/lib, /home/USER, /var/home/USER/x");
    check("GPU01.secret.org alice_runs /Users/carl/x", "HOST USER_runs /Users/USER/x");
    leaves("malice alices gpu012 nvidia-smi x");
    leaves("/home/");
}

static void test_bytes(void **state)
{
    (void)state;
    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 16);
    gp_redact_add(&redactor, &sb, "a\0b\xff", 4);
    assert_int_equal(sb.len, 4);
    assert_memory_equal(sb.buf, "a\0b\xff", 4);
    gp_strbuf_fini(&sb);
    check("", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_uuids, reset),     cmocka_unit_test_setup(test_serials, reset),
        cmocka_unit_test_setup(test_addresses, reset), cmocka_unit_test_setup(test_names, reset),
        cmocka_unit_test_setup(test_bytes, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
