"""What has a host run the jobs of a store that nobody watches or serves."""

import plistlib
import shlex
from collections.abc import Sequence

EVERY = 15
"""Minutes between two looks. Each does what is due, and that alone."""

UNITS = {
    "systemd": (
        "memlog-jobs.service and memlog-jobs.timer in ~/.config/systemd/user, then run: systemctl --user"
        " enable --now memlog-jobs.timer; loginctl enable-linger"
    ),
    "cron": "the table that crontab -e edits",
    "launchd": (
        "~/Library/LaunchAgents/memlog.jobs.plist, then run: launchctl load"
        " ~/Library/LaunchAgents/memlog.jobs.plist"
    ),
}
"""The hosts, and where the text goes."""


def unit(host: str, command: Sequence[str]) -> str:
    """The text that has a host run a command."""
    if host == "systemd":
        # https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html#Command%20lines
        started = " ".join(_of_systemd(word) for word in command)
        return (
            "# memlog-jobs.service\n[Unit]\nDescription=memlog runs the jobs that are due\n\n"
            f"[Service]\nType=oneshot\nExecStart={started}\n# Another process runs them.\n"
            "SuccessExitStatus=75\n\n"
            "# memlog-jobs.timer\n[Unit]\nDescription=memlog looks for jobs that are due\n\n"
            f"[Timer]\nOnCalendar=*:0/{EVERY}\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n"
        )
    if host == "cron":
        # cron takes % for a new line.
        return f"*/{EVERY} * * * * {shlex.join(command)}\n".replace("%", "\\%")
    agent = {
        "Label": "memlog.jobs",
        "ProgramArguments": [*command],
        "StartInterval": EVERY * 60,
        "ProcessType": "Background",
    }
    return plistlib.dumps(agent, sort_keys=False).decode()


def _of_systemd(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return escaped if escaped == shlex.quote(word) else f'"{escaped}"'
