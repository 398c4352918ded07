# wookayin/gpustat: a GPU that has fallen off the bus is a line, not an error
# machine: sick
import gpustat

stats = gpustat.new_query()
stats.print_formatted(no_color=True, show_header=False, show_power=True)
print(stats[2].available, stats[2].name, stats[2].uuid, stats[2].jsonify(), stats[2].processes, len(stats))
