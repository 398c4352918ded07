# wookayin/gpustat, README: the text of the program, and JSON
# machine: processes
import io
import json
import gpustat

stats = gpustat.new_query()
for options in ({}, {"show_cmd": True, "show_pid": True}, {"show_cmd": True, "show_user": True, "show_power": True},
                {"show_fan_speed": True, "show_codec": "enc,dec", "gpuname_width": 12}, {"no_processes": True}):
    stats.print_formatted(no_color=True, show_header=False, **options)
stats.print_formatted(force_color=True, show_header=False, show_power=True)
text = io.StringIO()
stats.print_json(text)
found = json.loads(text.getvalue())
print(sorted(found), found["driver_version"])
for gpu in found["gpus"]:
    for process in gpu["processes"]:
        for changes in ("cpu_percent", "cpu_memory_usage"):
            assert process.pop(changes) >= 0
    print(json.dumps(gpu))
