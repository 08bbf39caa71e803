package server

import (
	"context"
	"strconv"
	"strings"
)

// guestStatus is what a node knows about a container now: what the container list and status/current show, and
// /cluster/resources a status round later.
func (s *Server) guestStatus(g *guest) guestStat {
	out := guestStat{
		Status: "stopped", Name: g.Config["hostname"], Template: g.Config["template"] == "1",
		MaxMem: mib(g.Config["memory"], 512), MaxCPU: cpus(g.Config, s.findNode(g.Node)), MaxDisk: diskBytes(g.Config["rootfs"]),
	}
	if out.Name == "" {
		out.Name = "CT" + strconv.Itoa(g.VMID)
	}
	if g.Config["rootfs"] == "" {
		out.MaxDisk = defaultRootSize
	}
	if !g.visiblyRunning() {
		return out
	}
	out.Status = "running"
	if !g.hasInit() {
		return out
	}
	out.Uptime, out.MaxDisk = g.uptime(s.now()), usableBytes(out.MaxDisk)
	out.Mem, out.Disk = 1576960, 165396480
	out.NetIn, out.NetOut = 152, 1312
	if s.engine != nil {
		if status, err := s.engine.Inspect(context.WithoutCancel(s.ctx), g.VMID); err == nil {
			out.Mem = max(status.MemoryBytes, out.Mem)
			out.Disk = max(status.RootBytes, 0)
		}
	}
	return out
}

// mib is a number of MiB in bytes.
func mib(value string, otherwise int64) int64 {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		n = otherwise
	}
	return n << 20
}

// cpus is what a container may use: its cores, its limit, or the node's.
func cpus(config map[string]string, on *node) float64 {
	for _, key := range []string{"cores", "cpulimit"} {
		if n, err := strconv.ParseFloat(config[key], 64); err == nil && n > 0 {
			return n
		}
	}
	if on != nil {
		return float64(on.MaxCPU)
	}
	return 1
}

// diskBytes is the size= of a volume's line in bytes.
func diskBytes(line string) int64 {
	for _, part := range strings.Split(line, ",") {
		if size, ok := strings.CutPrefix(part, "size="); ok {
			return sizeBytes(size)
		}
	}
	return 0
}

// sizeBytes reads a size like 8G or 512M; a plain number is bytes.
func sizeBytes(text string) int64 {
	factor := int64(1)
	switch {
	case strings.HasSuffix(text, "K"):
		factor = 1 << 10
	case strings.HasSuffix(text, "M"):
		factor = 1 << 20
	case strings.HasSuffix(text, "G"):
		factor = 1 << 30
	case strings.HasSuffix(text, "T"):
		factor = 1 << 40
	}
	n, _ := strconv.ParseFloat(strings.TrimRight(text, "KMGT"), 64)
	return int64(n * float64(factor))
}

// formatSize writes a size as the server does: the biggest unit that divides it.
func formatSize(bytes int64) string {
	if bytes == 0 {
		return "0T"
	}
	units := []string{"", "K", "M", "G", "T"}
	i := 0
	for i < len(units)-1 && bytes%1024 == 0 {
		bytes /= 1024
		i++
	}
	return strconv.FormatInt(bytes, 10) + units[i]
}
