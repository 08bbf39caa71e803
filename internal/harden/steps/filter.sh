command -v nft >/dev/null || [ -x /usr/sbin/nft ] || die "nft is missing: install nftables"
put /etc/sandbox/nftables.conf 0644 <<'EOF'
#include nftables.conf
EOF
if [ "$PROFILE" = docker ]; then
  remove /etc/sandbox/nftables.d/10-forward.nft # Docker forwards for its containers
else
  put /etc/sandbox/nftables.d/10-forward.nft 0644 <<'EOF'
table inet sandbox {
	chain forward {
		type filter hook forward priority filter; policy drop;
	}
}
EOF
fi
put /usr/local/lib/sandbox/open-port 0755 <<'EOF'
#include open-port
EOF
put /etc/systemd/system/sandbox-filter.service 0644 <<'EOF'
#include sandbox-filter.service
EOF
pull_in sandbox-filter.service sysinit.target
