//! Builds the command lines of BMv2's switches.
//!
//! This module only builds the command: the caller starts and ends the process. The switch writes files only to the folder that
//! it is given.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Options of a BMv2 switch's command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// P4Runtime's device id of the switch.
    pub device_id: u64,
    /// Ports of the switch: port number, and name of the network interface.
    pub ports: Vec<(u32, String)>,
    /// TCP port of the switch's Thrift server (BMv2 binds it on all addresses).
    pub thrift_port: u16,
    /// Path of the switch's log, to which BMv2 appends `.txt`; `None` for no log.
    pub log: Option<PathBuf>,
    /// Folder for the switch's Unix sockets; the caller removes it.
    pub folder: PathBuf,
}

/// Features of an installed BMv2 switch that depend on how it was built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// Whether the switch has a Thrift server.
    pub thrift: bool,
    /// Whether the switch opens a socket for notifications, by default below /tmp.
    pub notifications: bool,
}

impl Features {
    /// Determines the features of a BMv2 executable from its `--help` text.
    pub fn of(program: &Path) -> io::Result<Features> {
        let output = Command::new(program)
            .arg("--help")
            .stdin(Stdio::null())
            .output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok(Features::read(&String::from_utf8_lossy(&said)))
    }

    fn read(help: &str) -> Features {
        Features {
            thrift: help.contains("--thrift-port"),
            notifications: help.contains("--notifications-addr"),
        }
    }
}

fn common(program: &Path, features: Features, options: &Options) -> Command {
    let mut command = Command::new(program);
    command.args(["--device-id", &options.device_id.to_string()]);
    if features.thrift {
        command.args(["--thrift-port", &options.thrift_port.to_string()]);
    }
    if features.notifications {
        let socket = options
            .folder
            .join(format!("notifications-{}.ipc", options.device_id));
        let address = format!("ipc://{}", socket.display());
        command.args(["--notifications-addr", &address]);
    }
    if let Some(log) = &options.log {
        command.arg("--log-file").arg(log);
        command.args(["--log-level", "debug", "--log-flush"]);
    }
    for (port, interface) in &options.ports {
        command.args(["-i", &format!("{port}@{interface}")]);
    }
    command
}

/// Builds the command for a `simple_switch_grpc` that waits for a P4Runtime client at `address`.
#[must_use]
pub fn simple_switch_grpc(
    program: &Path,
    features: Features,
    options: &Options,
    address: SocketAddr,
) -> Command {
    let mut command = common(program, features, options);
    // The arguments after `--` belong to the target.
    command.args(["--no-p4", "--", "--grpc-server-addr", &address.to_string()]);
    command
}

/// Builds the command for a `psa_switch` or `simple_switch` that runs the P4 program of the file `json`.
#[must_use]
pub fn with_program(program: &Path, features: Features, options: &Options, json: &Path) -> Command {
    let mut command = common(program, features, options);
    command.arg(json);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(command: &Command) -> Vec<String> {
        let arguments = command.get_args();
        arguments
            .map(|argument| argument.to_string_lossy().into_owned())
            .collect()
    }

    fn options() -> Options {
        Options {
            device_id: 3,
            ports: vec![(1, "veth1".into()), (40, "veth2".into())],
            thrift_port: 9093,
            log: None,
            folder: "/run/x".into(),
        }
    }

    #[test]
    fn a_psa_switch_is_started_with_its_program() {
        let all = Features {
            thrift: true,
            notifications: true,
        };
        let mut options = options();
        options.log = Some("/run/x/log".into());
        let command = with_program(
            Path::new("/b/psa_switch"),
            all,
            &options,
            Path::new("p.json"),
        );
        let expected = "--device-id 3 --thrift-port 9093 --notifications-addr ipc:///run/x/notifications-3.ipc \
                        --log-file /run/x/log --log-level debug --log-flush -i 1@veth1 -i 40@veth2 p.json";
        assert_eq!(arguments(&command).join(" "), expected);
        assert_eq!(command.get_program(), "/b/psa_switch");
    }

    #[test]
    fn a_switch_without_thrift_and_notifications_is_asked_for_neither() {
        let features = Features::read("Options:\n  --no-p4   Enable …\n");
        let address = "127.0.0.1:9560".parse().unwrap();
        let command = simple_switch_grpc(Path::new("s"), features, &options(), address);
        let expected =
            "--device-id 3 -i 1@veth1 -i 40@veth2 --no-p4 -- --grpc-server-addr 127.0.0.1:9560";
        assert_eq!(arguments(&command).join(" "), expected);
    }
}
