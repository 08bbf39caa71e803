# /run is in memory. Runs and their secrets are in folders of their own below, made by who runs them.
put /etc/tmpfiles.d/sandbox.conf 0644 <<'EOF'
d /run/sandbox 0755 root root -
d /run/sandbox/runs 0711 root root -
d /var/lib/sandbox 0755 root root -
d /var/lib/sandbox/runs 0711 root root -
EOF
mkdir -p /etc/sandbox
own /etc/sandbox 0 0 0755
if [ "$PROFILE" = strict ]; then
  put /etc/systemd/system/tmp.mount 0644 <<'EOF'
[Unit]
Description=Temporary files, in memory
ConditionPathIsSymbolicLink=!/tmp
DefaultDependencies=no
Conflicts=umount.target
Before=local-fs.target umount.target
After=swap.target

[Mount]
What=tmpfs
Where=/tmp
Type=tmpfs
Options=mode=1777,strictatime,nosuid,nodev,size=50%%,nr_inodes=1m
EOF
  pull_in tmp.mount local-fs.target
else
  remove /etc/systemd/system/local-fs.target.wants/tmp.mount /etc/systemd/system/tmp.mount
fi
