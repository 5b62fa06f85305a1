//! Boots a virtual machine, runs commands in it, and ends it.

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use crate::channel::{Channel, Ticket};
use crate::qemu::{self, Wiring};
use crate::{Accelerator, Image, MachineOptions, Output, tap};

/// Time limit of a boot without KVM, which takes a few seconds on an idle computer.
const BOOT_LIMIT: Duration = Duration::from_secs(90);
/// Time limit of a boot with KVM, which takes a second. After it, QEMU boots again by translation, as KVM may hang.
const KVM_BOOT_LIMIT: Duration = Duration::from_secs(10);
/// Default time limit of a command in a machine.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// Number of bytes from the end of the console output that an error shows.
const CONSOLE_TAIL: u64 = 4096;

/// Whether a boot with KVM has failed; machines then boot without it.
static KVM_HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Error of a virtual machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The machine's tap interface cannot be made.
    #[error("cannot make the interface {name}: {source}")]
    Interface {
        /// Name of the tap interface.
        name: String,
        /// Error that the operating system reported.
        source: io::Error,
    },
    /// QEMU cannot be started, or the connection to the machine cannot be made.
    #[error("machine {machine}: {source}")]
    Io {
        /// Name of the machine.
        machine: String,
        /// Error that the operating system reported.
        source: io::Error,
    },
    /// The machine did not boot.
    #[error("machine {machine} did not boot: {message}\n{console}")]
    Boot {
        /// Name of the machine.
        machine: String,
        /// The step of init.sh that failed, or the reason why init.sh did not report.
        message: String,
        /// The end of the console output: messages of the machine's kernel and of QEMU.
        console: String,
    },
    /// The machine has ended, or the connection to it is closed.
    #[error("machine {machine} has ended\n{console}")]
    Gone {
        /// Name of the machine.
        machine: String,
        /// The end of the console output: messages of the machine's kernel and of QEMU.
        console: String,
    },
    /// A command in the machine exceeded its time limit and was killed.
    #[error("machine {machine}: `{command}` did not end within {limit:?}")]
    Late {
        /// Name of the machine.
        machine: String,
        /// The shell command.
        command: String,
        /// Time limit of the command.
        limit: Duration,
    },
    /// A command in the machine that had to succeed failed.
    #[error("machine {machine}: `{command}` ended with {}: {}{}", output.status, output.stdout, output.stderr)]
    Failed {
        /// Name of the machine.
        machine: String,
        /// The shell command.
        command: String,
        /// Exit status and output of the command.
        output: Output,
    },
}

/// A running virtual machine. It ends when this value is dropped.
pub struct Machine {
    name: String,
    address: Ipv4Addr,
    qemu: Child,
    channel: Channel,
    console: File,
    accelerator: Accelerator,
    boot_time: Duration,
}

impl Machine {
    /// Boots a machine in the network namespace of the calling thread. The machine ends when that thread ends.
    pub fn boot(image: &Image, options: &MachineOptions) -> Result<Self, MachineError> {
        Starting::new(image, options)?.booted(image, options)
    }

    /// Boots several machines at the same time, each with its options.
    pub fn boot_all<const N: usize>(
        image: &Image,
        options: &[MachineOptions; N],
    ) -> Result<[Self; N], MachineError> {
        let starting: Vec<Starting> = options
            .iter()
            .map(|options| Starting::new(image, options))
            .collect::<Result<_, _>>()?;
        let machines = starting
            .into_iter()
            .zip(options)
            .map(|(starting, options)| starting.booted(image, options))
            .collect::<Result<Vec<Self>, _>>()?;
        let Ok(machines) = machines.try_into() else {
            unreachable!("as many machines as options");
        };
        Ok(machines)
    }

    /// Runs a shell command in the machine, for at most a minute. `ip` is busybox's, `/usr/bin/ip` iproute2's.
    pub fn run(&self, command: &str) -> Result<Output, MachineError> {
        self.run_within(command, COMMAND_LIMIT)
    }

    /// Runs a shell command in the machine, and kills the command after `limit`.
    pub fn run_within(&self, command: &str, limit: Duration) -> Result<Output, MachineError> {
        self.spawn(command)?.wait(limit)
    }

    /// Runs a shell command in the machine for at most a minute; returns its standard output, or an error if the command fails.
    pub fn succeed(&self, command: &str) -> Result<String, MachineError> {
        self.spawn(command)?.succeed(COMMAND_LIMIT)
    }

    /// Starts a shell command in the machine, and does not wait for its end.
    pub fn spawn(&self, command: &str) -> Result<Job<'_>, MachineError> {
        let ticket = self.channel.start(command).map_err(|_| self.gone())?;
        Ok(Job {
            machine: self,
            command: command.to_owned(),
            ticket: Some(ticket),
        })
    }

    /// Waits until a program in the machine listens on a TCP port.
    pub fn await_listening(&self, port: u16) -> Result<(), MachineError> {
        // proc(5): local address, remote address, state, of which 0A is listening. The kernel sends no notification.
        let listens = format!("[0-9A-F]*:{port:04X} [0-9A-F]*:0000 0A");
        let command =
            format!("until cat /proc/net/tcp* | grep -q '{listens}'; do usleep 10000; done");
        self.succeed(&command).map(|_| ())
    }

    /// Host name of the machine.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// IPv4 address of the machine.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Process id of the machine's QEMU.
    pub fn pid(&self) -> u32 {
        self.qemu.id()
    }

    /// How the machine's instructions are executed: by KVM, or translated by QEMU.
    pub fn accelerator(&self) -> Accelerator {
        self.accelerator
    }

    /// Time from the start of QEMU until the machine reported that it was ready.
    pub fn boot_time(&self) -> Duration {
        self.boot_time
    }

    /// The end of the console output: the messages of the machine's kernel and of QEMU.
    pub fn console(&self) -> String {
        console_tail(&self.console)
    }

    fn gone(&self) -> MachineError {
        MachineError::Gone {
            machine: self.name.clone(),
            console: self.console(),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        end(&mut self.qemu);
        self.channel.close();
    }
}

/// A command that runs in a machine. It is killed when this value is dropped.
pub struct Job<'a> {
    machine: &'a Machine,
    command: String,
    ticket: Option<Ticket>,
}

impl Job<'_> {
    /// Waits for the command's end, and kills the command after `limit`.
    pub fn wait(mut self, limit: Duration) -> Result<Output, MachineError> {
        let Some(ticket) = &self.ticket else {
            return Err(self.machine.gone());
        };
        match ticket.ended.recv_timeout(limit) {
            Ok(output) => {
                self.ticket = None;
                Ok(output)
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.machine.gone()),
            Err(RecvTimeoutError::Timeout) => Err(MachineError::Late {
                machine: self.machine.name.clone(),
                command: self.command.clone(),
                limit,
            }),
        }
    }

    /// Waits for the command's end; returns its standard output, or an error if the command fails or exceeds `limit`.
    pub fn succeed(self, limit: Duration) -> Result<String, MachineError> {
        let (machine, command) = (self.machine.name.clone(), self.command.clone());
        let output = self.wait(limit)?;
        match output.is_success() {
            true => Ok(output.stdout),
            false => Err(MachineError::Failed {
                machine,
                command,
                output,
            }),
        }
    }

    /// Kills the command and all processes of its session, and waits for its end.
    pub fn kill(self) -> Result<Output, MachineError> {
        if let Some(ticket) = &self.ticket {
            let ended = self.machine.channel.end(ticket.id);
            ended.map_err(|_| self.machine.gone())?;
        }
        self.wait(COMMAND_LIMIT)
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = &self.ticket {
            // A machine that has ended runs nothing.
            let _ = self.machine.channel.end(ticket.id);
        }
    }
}

/// A machine whose QEMU has been started, and that is booting.
struct Starting {
    machine: Machine,
    tap: File,
    since: Instant,
}

impl Starting {
    fn new(image: &Image, options: &MachineOptions) -> Result<Self, MachineError> {
        let tap = tap::open(&options.interface, options.mtu).map_err(|source| {
            let name = options.interface.clone();
            MachineError::Interface { name, source }
        })?;
        let accelerator = match is_kvm_there() {
            true => Accelerator::Kvm,
            false => Accelerator::Tcg,
        };
        Self::with(image, options, tap, accelerator).map_err(|source| MachineError::Io {
            machine: options.name.clone(),
            source,
        })
    }

    fn with(
        image: &Image,
        options: &MachineOptions,
        tap: File,
        accelerator: Accelerator,
    ) -> io::Result<Self> {
        let (ours, theirs) = socketpair(
            AddressFamily::Unix,
            SockType::Stream,
            None,
            SockFlag::SOCK_CLOEXEC,
        )?;
        let console = tempfile::tempfile()?;
        let channel = Channel::new(UnixStream::from(ours))?;
        let since = Instant::now();
        let wiring = Wiring {
            tap: &tap,
            channel: &theirs,
            console: &console,
        };
        let qemu = qemu::start(image, options, accelerator, &wiring)?;
        let machine = Machine {
            name: options.name.clone(),
            address: options.address,
            qemu,
            channel,
            console,
            accelerator,
            boot_time: Duration::ZERO,
        };
        // Our copy of the machine's end is closed here, so that the channel closes when QEMU ends.
        Ok(Self {
            machine,
            tap,
            since,
        })
    }

    /// Waits until the machine has booted. If it does not boot with KVM, boots it again without KVM.
    fn booted(self, image: &Image, options: &MachineOptions) -> Result<Machine, MachineError> {
        let Self {
            mut machine,
            tap,
            since,
        } = self;
        let is_kvm = machine.accelerator == Accelerator::Kvm;
        let limit = if is_kvm { KVM_BOOT_LIMIT } else { BOOT_LIMIT };
        match machine.channel.greeting(limit) {
            Ok(greeting) if greeting == "ready" => {
                machine.boot_time = since.elapsed();
                Ok(machine)
            }
            Err(_) if is_kvm => {
                KVM_HAS_FAILED.store(true, Ordering::Relaxed);
                // Two processes on one interface would share its frames.
                drop(machine);
                let again = Self::with(image, options, tap, Accelerator::Tcg);
                let again = again.map_err(|source| MachineError::Io {
                    machine: options.name.clone(),
                    source,
                })?;
                again.booted(image, options)
            }
            greeting => Err(MachineError::Boot {
                machine: options.name.clone(),
                message: greeting.unwrap_or_else(|error| match error {
                    RecvTimeoutError::Timeout => format!("no message within {limit:?}"),
                    RecvTimeoutError::Disconnected => "QEMU has ended".to_owned(),
                }),
                console: machine.console(),
            }),
        }
    }
}

fn is_kvm_there() -> bool {
    let has_failed = KVM_HAS_FAILED.load(Ordering::Relaxed);
    !has_failed
        && File::options()
            .read(true)
            .write(true)
            .open("/dev/kvm")
            .is_ok()
}

fn end(qemu: &mut Child) {
    // The process may have ended already.
    let _ = qemu.kill();
    let _ = qemu.wait();
}

fn console_tail(console: &File) -> String {
    let tail = || -> io::Result<Vec<u8>> {
        // Opened again, because QEMU writes at the position of the shared file description.
        let mut file = File::open(format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(console)
        ))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(CONSOLE_TAIL)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = tail().unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
