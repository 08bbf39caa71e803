# What updates or tidies by itself: a sandbox is short-lived, its updates come with the next template.
mask apt-daily.timer apt-daily-upgrade.timer unattended-upgrades.service man-db.timer e2scrub_all.timer fstrim.timer dpkg-db-backup.timer
# What can't work in a container, and fails or is waited for.
mask sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount dev-hugepages.mount proc-sys-fs-binfmt_misc.automount \
  systemd-udevd.service systemd-udev-trigger.service systemd-modules-load.service systemd-journald-audit.socket \
  systemd-networkd-wait-online.service systemd-timesyncd.service chrony.service auditd.service
for unit in postfix.service exim4.service rpcbind.service rpcbind.socket; do
  ! has_unit "$unit" || mask "$unit"
done

# Without nesting no unit can have namespaces of its own (226/NAMESPACE), so the profile strict asks for none.
if [ "$PROFILE" = strict ]; then
  put /etc/systemd/system/service.d/50-sandbox.conf 0644 <<'EOF'
[Service]
PrivateTmp=no
PrivateDevices=no
PrivateNetwork=no
PrivateUsers=no
ProtectSystem=no
ProtectHome=no
ProtectHostname=no
ProtectClock=no
ProtectControlGroups=no
ProtectKernelLogs=no
ProtectKernelModules=no
ProtectKernelTunables=no
ProtectProc=default
ProcSubset=all
LockPersonality=no
MountAPIVFS=no
RestrictNamespaces=no
ReadWritePaths=
ReadOnlyPaths=
InaccessiblePaths=
EOF
else
  remove /etc/systemd/system/service.d/50-sandbox.conf
fi
