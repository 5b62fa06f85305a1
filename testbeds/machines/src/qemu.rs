//! Starts the QEMU process of a virtual machine.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{getpid, getppid};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::{Image, MachineOptions};

/// The way in which a machine's instructions are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// The processor executes the machine's instructions (KVM).
    Kvm,
    /// QEMU translates the machine's instructions (TCG).
    Tcg,
}

impl Accelerator {
    fn argument(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg,thread=multi",
        }
    }
}

/// The files that connect a virtual machine with the test.
pub(crate) struct Wiring<'a> {
    /// The tap interface that carries the frames of the machine's NIC.
    pub tap: &'a File,
    /// The socket for requests to the machine and its replies.
    pub channel: &'a OwnedFd,
    /// The file that receives the messages of the machine's kernel and of QEMU.
    pub console: &'a File,
}

/// Starts the QEMU process of a machine, which ends with the calling thread.
pub(crate) fn start(
    image: &Image,
    options: &MachineOptions,
    accelerator: Accelerator,
    wiring: &Wiring<'_>,
) -> io::Result<Child> {
    let (tap, channel) = (wiring.tap.as_raw_fd(), wiring.channel.as_raw_fd());
    // With the libraries that QEMU was built with, not those of this computer.
    let qemu = image.qemu();
    let libraries = qemu.join("lib");
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    command
        .arg("--library-path")
        .arg(&libraries)
        .arg(qemu.join("qemu"))
        .env("QEMU_MODULE_DIR", qemu.join("modules"))
        .arg("-L")
        .arg(qemu.join("roms"))
        .args(["-nodefaults", "-no-user-config", "-no-reboot"])
        .args(["-display", "none", "-machine", "pc"])
        .args(["-accel", accelerator.argument(), "-cpu", "max"])
        .args(["-m", &format!("{}M", options.memory_mib)])
        .arg("-kernel")
        .arg(image.kernel())
        .arg("-initrd")
        .arg(image.initramfs())
        .args(["-append", &kernel_arguments(options)])
        .args(["-serial", "stdio"])
        .args(["-netdev", &format!("tap,id=net,fd={tap}")])
        .args(["-device", &nic(options)])
        .args(["-device", "virtio-serial-pci"])
        .args(["-chardev", &format!("socket,id=channel,fd={channel}")])
        .args(["-device", "virtserialport,chardev=channel,name=weir"])
        .stdin(Stdio::null())
        .stdout(wiring.console.try_clone()?)
        .stderr(wiring.console.try_clone()?);
    let parent = getpid();
    // SAFETY: the closure makes system calls alone, which are async-signal-safe. Both descriptors are open until spawn returns.
    unsafe {
        command.pre_exec(move || {
            for descriptor in [tap, channel] {
                let descriptor = BorrowedFd::borrow_raw(descriptor);
                fcntl(descriptor, FcntlArg::F_SETFD(FdFlag::empty()))?;
            }
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            // The parent may have died before the call took effect.
            match getppid() == parent {
                true => Ok(()),
                false => Err(Errno::ESRCH.into()),
            }
        });
    }
    command.spawn()
}

/// QEMU's NIC, without offloads: the machine computes checksums and segments, so that a switch sees frames as on a wire.
fn nic(options: &MachineOptions) -> String {
    let mac = options.mac.map(|byte| format!("{byte:02x}")).join(":");
    let off = [
        "csum",
        "gso",
        "guest_csum",
        "guest_tso4",
        "guest_tso6",
        "guest_ecn",
        "guest_ufo",
    ];
    let off = off.map(|feature| format!(",{feature}=off")).concat();
    // Without a ROM, which would try to boot from the network.
    format!("virtio-net-pci,netdev=net,romfile=,mac={mac}{off}")
}

/// Command line of the machine's kernel. It disables the kernel's timer check, which fails if QEMU gets no processor.
fn kernel_arguments(options: &MachineOptions) -> String {
    let MachineOptions {
        name,
        address,
        prefix,
        mtu,
        ..
    } = options;
    format!(
        "console=ttyS0 loglevel=4 panic=-1 random.trust_cpu=on mitigations=off no_timer_check \
         weir.name={name} weir.address={address}/{prefix} weir.mtu={mtu}"
    )
}
