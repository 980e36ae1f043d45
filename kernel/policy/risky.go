package policy

// risky are programs that a person should have in view, and why.
var risky = func() map[string]string {
	m := map[string]string{}
	for why, names := range map[string][]string{
		privileged: {"sudo", "su", "doas", "pkexec", "runas", "chown", "chgrp", "chroot", "unshare", "nsenter", "mount", "umount", "setcap", "setfacl", "visudo",
			"useradd", "usermod", "userdel", "passwd", "systemctl", "service", "launchctl", "loginctl", "crontab", "at", "batch", "iptables", "nft", "ufw",
			"sysctl", "modprobe", "insmod", "rmmod", "security", "defaults", "reg", "netsh", "sc", "ip", "ifconfig"},
		destructive: {"dd", "mkfs", "mkfs.ext4", "mkfs.xfs", "mkfs.vfat", "mke2fs", "mkswap", "fdisk", "parted", "wipefs", "shred", "truncate", "kill", "pkill", "killall",
			"shutdown", "reboot", "halt", "poweroff", "init", "del", "rd", "format", "diskpart", "install", "rsync", "patch", "srm"},
		publishes: {"twine", "gem", "vercel", "netlify", "firebase", "wrangler", "sst", "serverless", "flyctl", "fly", "heroku", "surge", "gh", "glab", "hub", "goreleaser",
			"semantic-release", "mail", "sendmail", "s3cmd", "rclone"},
		installs: {"pip", "pip3", "pipx", "brew", "apt", "apt-get", "dpkg", "dnf", "yum", "rpm", "pacman", "apk", "snap", "flatpak", "conda", "mamba", "composer",
			"nuget", "choco", "winget", "scoop", "corepack", "rustup", "nvm", "asdf", "mise"},
		remote: {"ssh", "scp", "sftp", "ftp", "telnet", "nc", "ncat", "netcat", "socat", "kubectl", "helm", "docker", "podman", "nerdctl", "docker-compose", "terraform",
			"tofu", "pulumi", "ansible", "ansible-playbook", "aws", "gcloud", "az", "gsutil", "psql", "mysql", "mongosh", "redis-cli"},
		notUnderstood: {"eval", "trap", "alias", "unalias", "set", "shopt", "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
			"function", "select", "coproc", "[[", "{", "}", "!", "parallel", "watch", "setsid", "disown", "builtin", "enable", "hash", "bind", "complete", "fc", "osascript",
			"powershell", "pwsh", "cmd"},
		"shows_environment": {"printenv", "declare", "typeset", "compgen"},
	} {
		for _, n := range names {
			m[n] = why
		}
	}
	return m
}()
