//! Finds the setting of this machine because of which it refuses the namespaces of a sandbox.

use std::fmt;

use nix::errno::Errno;

/// Step of entering the sandbox that was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Creating the sandbox's namespaces.
    Namespaces,
    /// Mapping the user and the group into the user namespace.
    Identity,
    /// Making the sandbox's mounts private.
    Mounts,
    /// Bringing the sandbox's loopback interface up.
    Loopback,
    /// Forking the program that runs in the sandbox.
    Fork,
}

impl Step {
    pub(super) const ALL: [Step; 5] = [
        Step::Namespaces,
        Step::Identity,
        Step::Mounts,
        Step::Loopback,
        Step::Fork,
    ];

    fn description(self) -> &'static str {
        match self {
            Step::Namespaces => "create user, network, mount and PID namespaces",
            Step::Identity => "map the user inside a new user namespace",
            Step::Mounts => "make mounts private inside a new mount namespace",
            Step::Loopback => "bring up the loopback interface inside a new network namespace",
            Step::Fork => "start a process inside the new namespaces",
        }
    }
}

/// The machine's refusal of a sandbox, with the setting to change if it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The step of entering the sandbox that was refused.
    pub step: Step,
    /// Error that the operating system reported.
    pub errno: Errno,
    /// The setting that causes the refusal, with the change that the user has to make; `None`: it was not found.
    pub setting: Option<String>,
}

impl Refusal {
    /// Looks for the setting that causes the refusal. `read` returns the content of a file of /proc.
    pub(super) fn explain(
        step: Step,
        errno: Errno,
        read: impl Fn(&str) -> Option<String>,
    ) -> Refusal {
        Refusal {
            step,
            errno,
            setting: refusing_setting(step, read),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this machine does not let the program {} ({})",
            self.step.description(),
            self.errno.desc()
        )?;
        match &self.setting {
            Some(setting) => write!(f, ": {setting}"),
            None => Ok(()),
        }
    }
}

pub(super) fn read_setting(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn refusing_setting(step: Step, read: impl Fn(&str) -> Option<String>) -> Option<String> {
    if step == Step::Fork {
        return None;
    }
    let is = |path: &str, value: &str| read(path).is_some_and(|content| content.trim() == value);
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return Some("set sysctl kernel.unprivileged_userns_clone to 1".into());
    }
    for kind in ["user", "net", "mnt", "pid"] {
        if is(&format!("/proc/sys/user/max_{kind}_namespaces"), "0") {
            return Some(format!("sysctl user.max_{kind}_namespaces is 0; raise it"));
        }
    }
    if is(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        return Some(
            "set sysctl kernel.apparmor_restrict_unprivileged_userns to 0, or give this program an AppArmor profile \
             that allows userns"
                .into(),
        );
    }
    let filtered = read("/proc/self/status")?.lines().any(|line| {
        line.strip_prefix("Seccomp:")
            .is_some_and(|mode| mode.trim() == "2")
    });
    filtered.then(|| {
        "a seccomp filter is in force, as in a container; run the container with a profile that allows \
         clone(CLONE_NEWUSER) and mount"
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine<'a>(files: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |path| {
            files
                .iter()
                .find(|(name, _)| *name == path)
                .map(|(_, content)| content.to_string())
        }
    }

    #[test]
    fn each_setting_is_named() {
        let cases: [(&[(&str, &str)], &str); 5] = [
            (
                &[("/proc/sys/kernel/unprivileged_userns_clone", "0\n")],
                "kernel.unprivileged_userns_clone",
            ),
            (
                &[("/proc/sys/user/max_user_namespaces", "0\n")],
                "user.max_user_namespaces",
            ),
            (
                &[("/proc/sys/user/max_net_namespaces", "0\n")],
                "user.max_net_namespaces",
            ),
            (
                &[(
                    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                    "1\n",
                )],
                "kernel.apparmor_restrict_unprivileged_userns",
            ),
            (
                &[("/proc/self/status", "Name:\tweir\nSeccomp:\t2\n")],
                "seccomp",
            ),
        ];
        for (files, expected) in cases {
            let refusal = Refusal::explain(Step::Namespaces, Errno::EPERM, machine(files));
            let text = refusal.to_string();
            assert!(text.contains(expected), "{text}");
            assert_eq!(text.lines().count(), 1, "{text}");
        }
    }

    #[test]
    fn an_innocent_setting_is_not_blamed() {
        let files = [
            ("/proc/sys/kernel/unprivileged_userns_clone", "1\n"),
            ("/proc/sys/user/max_user_namespaces", "95000\n"),
            ("/proc/self/status", "Seccomp:\t0\n"),
        ];
        let refusal = Refusal::explain(Step::Mounts, Errno::EPERM, machine(&files));
        assert_eq!(refusal.setting, None);
        assert!(refusal.to_string().contains("make mounts private"));
    }
}
