put /usr/local/lib/sandbox/lease 0755 <<'@lease@'
#include lease
@lease@
put /etc/systemd/system/sandbox-lease.service 0644 <<'EOF'
[Unit]
Description=Whether this sandbox's time is over
Documentation=file:/usr/local/lib/sandbox/lease

[Service]
Type=oneshot
ExecStart=/usr/local/lib/sandbox/lease
EOF
put /etc/systemd/system/sandbox-lease.timer 0644 <<'EOF'
[Unit]
Description=Looks at this sandbox's lease every minute

[Timer]
OnBootSec=1min
OnUnitActiveSec=1min
AccuracySec=10s

[Install]
WantedBy=timers.target
EOF
pull_in sandbox-lease.timer timers.target
