put /etc/security/limits.d/50-sandbox.conf 0644 <<'EOF'
# A core dump holds whatever its program had in memory.
* hard core 0
* soft core 0
root hard core 0
EOF
put /etc/systemd/coredump.conf.d/50-sandbox.conf 0644 <<'EOF'
[Coredump]
Storage=none
ProcessSizeMax=0
EOF
put /etc/systemd/system.conf.d/50-sandbox.conf 0644 <<EOF
[Manager]
DefaultLimitCORE=0
DefaultTasksMax=$TASKS_MAX
DefaultTimeoutStopSec=30s
EOF
put /etc/systemd/system/user-.slice.d/50-sandbox.conf 0644 <<EOF
# What one user may start; a fork bomb would take the node's process ids.
[Slice]
TasksMax=$TASKS_MAX
EOF
put /etc/systemd/journald.conf.d/50-sandbox.conf 0644 <<'EOF'
# In memory, and little of it: a sandbox's disk is for work.
[Journal]
Storage=volatile
RuntimeMaxUse=32M
Audit=no
EOF
