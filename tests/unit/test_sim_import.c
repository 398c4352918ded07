/* Captures become machines: every published one, and malformed ones with file and line. */
#include "unit.h"

#include "base/err.h"
#include "base/strbuf.h"
#include "sim/import.h"
#include "sim/machine.h"

#include <dirent.h>
#include <unistd.h>

static char file[128];

static int make_file(void **state)
{
    (void)state;
    temporary_name(file, sizeof(file), "import");
    int fd = mkstemp(file);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file);
}

static void write_file(const char *text)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Imports a capture of the source tree and loads what came out. */
static struct sim_machine *import(const char *name)
{
    char path[1024];
    const char *source = getenv("GPULSE_SOURCE");
    struct gp_err err = {0};
    struct sim_machine *machine = NULL;
    json_t *json = NULL;
    (void)snprintf(path, sizeof(path), "%s/data/captures/%s", source ? source : ".", name);
    if (sim_import(path, &json, &err) != GP_OK)
        fail_msg("%s", err.text);
    assert_int_equal(json_dump_file(json, file, 0), 0);
    json_decref(json);
    if (sim_machine_load(file, 0, &machine, &err) != GP_OK)
        fail_msg("%s: %s", name, err.text);
    return machine;
}

static void every_capture_becomes_a_machine(void **state)
{
    (void)state;
    char path[1024];
    const char *source = getenv("GPULSE_SOURCE");
    (void)snprintf(path, sizeof(path), "%s/data/captures", source ? source : ".");
    DIR *dir = opendir(path);
    assert_non_null(dir);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t len = strlen(entry->d_name);
        if (len < 4 || strcmp(entry->d_name + len - 4, ".xml") != 0)
            continue;
        struct sim_machine *machine = import(entry->d_name);
        for (size_t i = 0; i < machine->device_count; i++) {
            const struct sim_value *v = machine->devices[i].answers;
            assert_int_equal(v[SIM_NAME].code, NVML_SUCCESS);
            assert_int_equal(v[SIM_MEM_TOTAL].code, NVML_SUCCESS);
            uint64_t reserved =
                v[SIM_MEM_RESERVED].code == NVML_SUCCESS ? v[SIM_MEM_RESERVED].number : 0;
            assert_int_equal(reserved + v[SIM_MEM_USED].number + v[SIM_MEM_FREE].number,
                             v[SIM_MEM_TOTAL].number);
        }
        sim_machine_free(machine);
        count++;
    }
    (void)closedir(dir);
    assert_int_equal(count, 19);
}

static uint64_t number(const struct sim_machine *machine, enum sim_slot slot)
{
    assert_int_equal(machine->devices[0].answers[slot].code, NVML_SUCCESS);
    return machine->devices[0].answers[slot].number;
}

/* A field that the machine does not know counts as NOT_FOUND. */
static struct sim_value field(const struct sim_machine *machine, unsigned int id,
                              unsigned int scope)
{
    const struct sim_device *device = &machine->devices[0];
    for (size_t i = 0; i < device->field_count; i++)
        if (device->fields[i].id == id && device->fields[i].scope == scope)
            return device->fields[i].value;
    return (struct sim_value){.code = NVML_ERROR_NOT_FOUND};
}

static void values_are_those_of_the_capture(void **state)
{
    (void)state;
    struct sim_machine *m = import("qx__k8stestinfra_h100.xml");
    assert_int_equal(m->device_count, 8);
    assert_string_equal(m->driver_version, "580.105.08");
    assert_string_equal(m->nvml_version, "13.580.105.08");
    assert_int_equal(m->cuda_version, 13000);
    assert_int_equal(number(m, SIM_BRAND), NVML_BRAND_NVIDIA);
    assert_int_equal(number(m, SIM_ARCH), NVML_DEVICE_ARCH_HOPPER);
    assert_int_equal(number(m, SIM_CC_MAJOR), 9);
    assert_int_equal(number(m, SIM_CC_MINOR), 0);
    assert_int_equal(number(m, SIM_BOARD_ID), 0x5300);
    assert_int_equal(number(m, SIM_POWER), 68570);
    assert_int_equal(number(m, SIM_LIMIT_MIN), 200000);
    assert_int_equal(number(m, SIM_REASONS), 1);
    assert_int_equal(number(m, SIM_MEM_TOTAL), UINT64_C(81559) << 20);
    assert_int_equal(number(m, SIM_MEM_USED), 0);
    assert_int_equal((number(m, SIM_MEM_FREE) + (1 << 20) - 1) >> 20, 81080);
    assert_int_equal((number(m, SIM_MEM_RESERVED) + (1 << 20) - 1) >> 20, 480);
    assert_int_equal((int64_t)number(m, SIM_MARGIN), 58);
    assert_int_equal(m->devices[0].answers[SIM_FAN].code, NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(number(m, SIM_DISPLAY_MODE), 1); /* display_attached says it */
    assert_int_equal((int64_t)field(m, 193, 0).number, -8);
    assert_int_equal(field(m, 186, 0).number, 68920);
    assert_int_equal(field(m, 185, 2).number, 32980);
    assert_int_equal(field(m, 185, 1).code, NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(field(m, 74, 0).number, UINT64_C(7015662857000));
    assert_int_equal(field(m, 230, 0).number, NVML_GPU_RECOVERY_ACTION_NONE);
    assert_int_equal(field(m, 269, 0).number, 0);
    assert_int_equal(field(m, 251, 0).code, NVML_ERROR_NOT_FOUND);
    sim_machine_free(m);
}

static void older_captures_are_read_too(void **state)
{
    (void)state;
    struct sim_machine *m = import("qx__netdata_tesla-p100.xml");
    assert_int_equal(number(m, SIM_POWER), 26160);
    assert_int_equal(number(m, SIM_ECC_TOTAL_CA), 3);
    assert_int_equal(number(m, SIM_CC_MAJOR), 6);
    assert_int_equal(number(m, SIM_THRESHOLD_SLOWDOWN), 82);
    sim_machine_free(m);

    m = import("qx__netdata_rtx-2080-win.xml");
    assert_true(m->devices[0].process_count > 5);
    assert_true(m->devices[0].processes[0].compute && m->devices[0].processes[0].graphics);
    assert_false(m->devices[0].processes[0].memory_known);
    sim_machine_free(m);

    m = import("qx__telegraf_a100-sxm4-v12.xml");
    assert_int_equal(m->devices[0].mig_count, 4);
    assert_string_equal(m->devices[0].migs[1].uuid, "MIG-00000400-7d19-9063-b049-1e69664bb298");
    sim_machine_free(m);

    m = import("qx__telegraf_gtx-1070-ti.xml");
    assert_null(m->driver_version);
    assert_int_equal(m->devices[0].pci_bus, 1);
    sim_machine_free(m);
}

static void refuse(const char *text, const char *words)
{
    struct gp_err err = {0};
    json_t *json = NULL;
    write_file(text);
    int result = sim_import(file, &json, &err);
    json_decref(json);
    assert_int_equal(result, GP_EFORMAT);
    assert_int_equal(gp_err_exit_status(result), 2);
    if (!strstr(err.text, words) || !strstr(err.text, file))
        fail_msg("'%s' is not in '%s'", words, err.text);
}

static void malformed_captures_are_refused_with_their_line(void **state)
{
    (void)state;
    refuse("", ":1:");
    refuse("<nvidia_smi_log>\n<gpu>\n</nvidia_smi_log>", ":3: mismatched tag");
    refuse("<html><body/></html>", "not the output of nvidia-smi -q -x");
    refuse("<nvidia_smi_log>\n</nvidia_smi_log>", ":1: the capture has no <gpu>");
    refuse("<nvidia_smi_log>\n\n<gpu id=\"0:0:0.0\"><product_name>x</product_name></gpu>"
           "</nvidia_smi_log>",
           ":3: this GPU has no uuid");
    refuse("<!DOCTYPE a [<!ENTITY b \"bbbb\">]>\n<nvidia_smi_log>&b;</nvidia_smi_log>",
           "contains an entity");

    static char deep[8192] = "<nvidia_smi_log>";
    for (int i = 0; i < 100; i++)
        (void)strcat(deep, "<gpu>");
    refuse(deep, "nested too deeply");
    static char wide[8192] = "<nvidia_smi_log>";
    memset(wide + strlen(wide), 'x', 6000);
    refuse(wide, "a text is too long");
}

#define LOG "GPU 00000000:01:00.0\n"

static void malformed_texts_are_refused_with_their_line(void **state)
{
    (void)state;
    refuse("nothing of the kind\n", ":1: not a capture");
    refuse("GPU 0:1\n\n\n", ":1: not a capture");
    refuse("\n" LOG "    Fan Speed : 3\a %\n", ":3: not a text: it contains the byte 0x07");
    refuse(LOG "    Product Name : caf\xe9\n", ":2: not a text: it contains the byte 0xe9");
    refuse("\xff\xfeG", ":1: not a text: it contains the byte 0xff");
    refuse(LOG "    Fan Speed : 3", ":2: the line has no newline; was the capture cut off?");
    refuse(LOG, ":1: nothing after 'GPU 00000000:01:00.0'; was the capture cut off?");
    refuse(LOG "    PCI\n        Bus : 0x01\n        GPU Link Info\n\n",
           ":5: nothing after 'PCI/GPU Link Info'; was the capture cut off?");
    refuse("\n" LOG "    Product Name : Tesla T4\n    Fan Speed : 3 %\n",
           ":4: 00000000:01:00.0 has no process section");
    refuse(LOG "    Product Name : Tesla T4\nGPU 00000000:02:00.0\n    Fan Speed : 3 %\n",
           ":3: 00000000:01:00.0 has no process section");
    refuse(LOG "    Product Name : Tesla T4\nAttached GPUs : 1\n" LOG "    Processes : None\n",
           ":3: 00000000:01:00.0 has no process section");
    refuse(LOG "    (...)\n", ":2: expected 'Label : value' or a heading");
    refuse(LOG "    Fan Speed : 3 %\nDone\n", ":3: expected 'Label : value' or a heading");
    refuse(LOG "      Fan Speed : 3 %\n", ":2: indentation of 6");
    refuse(LOG "    PCI\n                Bus : 0x01\n", ":3: indentation of 16");
    refuse("Attached GPUs : 1\n    Fan Speed : 3 %\n", ":2: indentation of 4");
    refuse("Attached GPUs : 1\n", ":1: the capture has no GPU");

    struct gp_strbuf sb = GP_STRBUF_INIT(65536);
    gp_strbuf_adds(&sb, LOG);
    for (size_t i = 1; i < 12; i++) {
        gp_strbuf_fill(&sb, ' ', 4 * i);
        gp_strbuf_adds(&sb, "x\n");
    }
    refuse(sb.buf, ":11: indentation of 40");
    gp_strbuf_reset(&sb);
    gp_strbuf_adds(&sb, LOG "    Product Name : ");
    gp_strbuf_fill(&sb, 'x', 5000);
    gp_strbuf_addc(&sb, '\n');
    refuse(sb.buf, ":2: the line is too long");
    gp_strbuf_fini(&sb);
}

#define HEADER "name, pci.bus_id, fan.speed [%]\n"

static void malformed_queries_are_refused_with_their_line(void **state)
{
    (void)state;
    refuse("Tesla T4, 00000000:01:00.0, 3 %\n", ":1: not a capture");
    refuse("name, uuid\nTesla T4, GPU-1\n", ":1: not a capture");
    refuse(HEADER, ":1: no GPU after the header");
    refuse("\n" HEADER "Tesla T4, 00000000:01:00.0\n",
           ":3: 2 values, but the header has 3 fields");
    refuse(HEADER "Tesla T4, 00000000:01:00.0, 3 %, 4\n", ":2: 4 values");
    refuse("name, pci.bus_id, a/b\nx, y, z\n", ":1: invalid field name 'a/b'");
    refuse(HEADER "Tesla T4, 00000000:01:00.0, 3", ":2: the line has no newline");

    struct gp_strbuf sb = GP_STRBUF_INIT(65536);
    gp_strbuf_adds(&sb, "pci.bus_id");
    for (int i = 0; i < 512; i++)
        gp_strbuf_addf(&sb, ", f%d", i);
    gp_strbuf_addc(&sb, '\n');
    refuse(sb.buf, ":1: more than 512 fields");
    gp_strbuf_reset(&sb);
    gp_strbuf_adds(&sb, HEADER);
    for (unsigned int i = 0; i <= SIM_MAX_DEVICES; i++)
        gp_strbuf_addf(&sb, "Tesla T4, 00000000:%02x:%02x.0, 3 %%\n", i >> 5, i & 31);
    refuse(sb.buf, ":258: more than 256 GPUs");
    gp_strbuf_reset(&sb);
    gp_strbuf_adds(&sb, HEADER);
    gp_strbuf_fill(&sb, 'x', 5000);
    gp_strbuf_adds(&sb, ", 00000000:01:00.0, 3 %\n");
    refuse(sb.buf, ":2: a value is too long");
    gp_strbuf_fini(&sb);
}

/* Imports a text and loads what came out. */
static struct sim_machine *machine_of(const char *text)
{
    struct gp_err err = {0};
    struct sim_machine *machine = NULL;
    json_t *json = NULL;
    write_file(text);
    if (sim_import(file, &json, &err) != GP_OK)
        fail_msg("%s", err.text);
    assert_int_equal(json_dump_file(json, file, 0), 0);
    json_decref(json);
    if (sim_machine_load(file, 0, &machine, &err) != GP_OK)
        fail_msg("%s", err.text);
    return machine;
}

static void logs_are_read(void **state)
{
    (void)state;
    struct sim_machine *m = import("q__h100-mig_590.48.01__load.txt");
    assert_int_equal(m->devices[0].mig_count, 4);
    assert_int_equal(m->devices[0].process_count, 3);
    assert_int_equal(m->devices[0].processes[1].gpu_instance, 2);
    assert_int_equal(number(m, SIM_LIMIT_MIN), 200000);
    assert_string_equal(m->source, "nvidia-smi -q, q__h100-mig_590.48.01__load.txt");
    sim_machine_free(m);

    /* Windows line ends, a byte order mark, a prompt above, the log of -l again below. */
    m = machine_of("\xef\xbb\xbf"
                   "C:\\> nvidia-smi -q -d POWER -l 5\r\n\r\n"
                   "==============NVSMI LOG==============\r\n\r\n"
                   "Driver Version : 610.62 [Deprecated; use KMD Version]\r\n"
                   "Attached GPUs : 1\r\nGPU 0000:01:00.0\r\n    FAN SPEED : 38 %\r\n"
                   "    New Heading\r\n        New Label : new\r\n\r\n"
                   "==============NVSMI LOG==============\r\n"
                   "GPU 0000:01:00.0\r\n    Fan Speed : 39 %\r\n");
    assert_int_equal(m->device_count, 1);
    assert_string_equal(m->driver_version, "610.62");
    assert_string_equal(m->devices[0].uuid, "GPU-00000000-0000-0000-0000-000000000100");
    assert_int_equal(m->devices[0].pci_bus, 1);
    assert_int_equal(number(m, SIM_FAN), 38);
    sim_machine_free(m);

    /* Before R450 a process had no instances: the pid begins the next one. */
    m = machine_of(LOG "    Processes\n"
                       "        Process ID : 7\n            Type : C\n            Name : a : b\n"
                       "            Used GPU Memory : 5 MiB\n"
                       "        Process ID : 8\n            Type : G\n            Name :\n"
                       "            Used GPU Memory : Not available in WDDM driver model\n");
    assert_int_equal(m->devices[0].process_count, 2);
    assert_string_equal(m->devices[0].processes[0].name, "a : b");
    assert_int_equal(m->devices[0].processes[0].memory_bytes, 5 << 20);
    assert_int_equal(m->devices[0].processes[1].pid, 8);
    assert_true(m->devices[0].processes[1].graphics);
    assert_false(m->devices[0].processes[1].memory_known);
    sim_machine_free(m);
}

static void queries_are_read(void **state)
{
    (void)state;
    struct sim_machine *m = import("query-gpu__h100-80gb-hbm3_590.48.01__load.txt");
    assert_int_equal(number(m, SIM_POWER), 631950);
    assert_int_equal(number(m, SIM_CC_MAJOR), 9);
    assert_int_equal(number(m, SIM_REASONS_SUPPORTED), 0x1ff);
    assert_int_equal(field(m, 186, 0).number, 625680);
    sim_machine_free(m);

    /* Without units, with a field of a later driver, again and again. */
    m = machine_of("pci.bus_id, compute_cap, fan.speed [%], clocks_throttle_reasons.supported, "
                   "inforom.checksum_validation, gsp.mode.current, a.b\n"
                   "00000000:01:00.0, 12.1, 38, 0x00000000000000FF, invalid, Enabled, \n"
                   "00000000:02:00.0, [N/A], [Unknown Error], [N/A], valid, [N/A],\n"
                   "00000000:01:00.0, 12.1, 39, 0x00000000000000FF, valid, Disabled, \n"
                   "00000000:02:00.0, [N/A], [Unknown Error], [N/A], valid, [N/A], \n");
    assert_int_equal(m->device_count, 2);
    assert_int_equal(number(m, SIM_CC_MAJOR), 12);
    assert_int_equal(number(m, SIM_CC_MINOR), 1);
    assert_int_equal(number(m, SIM_FAN), 38);
    assert_int_equal(number(m, SIM_REASONS_SUPPORTED), 0xff);
    assert_int_equal(number(m, SIM_GSP_ENABLED), 1);
    assert_int_equal(m->devices[0].answers[SIM_INFOROM_VALID].code, NVML_ERROR_CORRUPTED_INFOROM);
    assert_int_equal(m->devices[1].answers[SIM_INFOROM_VALID].code, NVML_SUCCESS);
    assert_int_equal(m->devices[0].answers[SIM_REASONS].code, NVML_ERROR_NOT_SUPPORTED);
    assert_int_equal(m->devices[1].answers[SIM_FAN].code, NVML_ERROR_UNKNOWN);
    assert_string_equal(m->devices[1].uuid, "GPU-00000000-0000-0000-0000-000000000200");
    sim_machine_free(m);
}

static void copies_have_identities_of_their_own(void **state)
{
    (void)state;
    static const char *const captures[] = {"qx__telegraf_a100-sxm4-v12.xml",
                                           "qx__netdata_rtx-4090-driver-535.xml",
                                           "qx__k8stestinfra_h100.xml"};
    for (size_t n = 0; n < 3; n++) {
        struct gp_err err = {0};
        struct sim_machine *m = NULL;
        sim_machine_free(import(captures[n])); /* leaves the machine in the file */
        assert_int_equal(sim_machine_load(file, SIM_MAX_DEVICES, &m, &err), GP_OK);
        assert_int_equal(m->device_count, SIM_MAX_DEVICES);
        for (size_t i = 0; i < m->device_count; i++) {
            const struct sim_device *a = &m->devices[i];
            for (size_t j = 0; j < a->mig_count; j++)
                assert_ptr_equal(a->migs[j].parent, a);
            for (size_t j = 0; j < i; j++) {
                const struct sim_device *b = &m->devices[j];
                assert_string_not_equal(a->uuid, b->uuid);
                assert_false(a->pci_domain == b->pci_domain && a->pci_bus == b->pci_bus);
                if (a->mig_count)
                    assert_string_not_equal(a->migs[0].uuid, b->migs[0].uuid);
            }
        }
        sim_machine_free(m);
    }
}

static void memory_failures_are_survived(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "<nvidia_smi_log><driver_version>580.1</driver_version><gpu id=\"00000000:01:00.0\">"
        "<uuid>GPU-1</uuid><product_name>x</product_name><fan_speed>3 %</fan_speed>"
        "</gpu></nvidia_smi_log>",
        LOG
        "    Product Name : x\n    PCI\n        Bus Id : 00000000:01:00.0\n    Processes : None\n",
        HEADER "x, 00000000:01:00.0, 3 %\n",
    };
    bool done = false;
    for (size_t i = 0; i < GP_ARRAY_LEN(texts); i++) {
        write_file(texts[i]);
        done = false;
        for (long n = 0; n < 1000 && !done; n++) {
            struct gp_err err = {0};
            json_t *json = NULL;
            alloc_fail_from(n);
            done = sim_import(file, &json, &err) == GP_OK;
            alloc_fail_from(-1);
            assert_true(done || err.text[0]);
            json_decref(json);
        }
        assert_true(done);
    }

    sim_machine_free(import("qx__telegraf_a100-sxm4-v12.xml"));
    done = false;
    for (long n = 0; n < 5000 && !done; n++) {
        struct gp_err err = {0};
        struct sim_machine *machine = NULL;
        alloc_fail_from(n);
        done = sim_machine_load(file, 3, &machine, &err) == GP_OK;
        alloc_fail_from(-1);
        sim_machine_free(machine);
    }
    assert_true(done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_capture_becomes_a_machine),
        cmocka_unit_test(values_are_those_of_the_capture),
        cmocka_unit_test(older_captures_are_read_too),
        cmocka_unit_test(malformed_captures_are_refused_with_their_line),
        cmocka_unit_test(malformed_texts_are_refused_with_their_line),
        cmocka_unit_test(malformed_queries_are_refused_with_their_line),
        cmocka_unit_test(logs_are_read),
        cmocka_unit_test(queries_are_read),
        cmocka_unit_test(copies_have_identities_of_their_own),
        cmocka_unit_test(memory_failures_are_survived),
    };
    return cmocka_run_group_tests_name("sim_import", tests, make_file, remove_file);
}
