//! Makes the files that a virtual machine boots: Debian's kernel and an initramfs with a few files of Debian's
//! packages. QEMU comes from the same packages, so that none has to be installed.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::ImageError;
use crate::cpio::Archive;
use crate::elf;
use crate::kernel::unpacked;
use crate::packages::{self, Deadline};

/// Debian's metapackage of the newest kernel with software RoCE, which the cloud kernel lacks.
const KERNEL: &str = "linux-image-amd64";
/// Debian packages of the programs in the machine, of its verbs provider, and of QEMU.
const PACKAGES: [&str; 9] = [
    "busybox-static",
    "ibverbs-providers",
    "ibverbs-utils",
    "iproute2",
    "perftest",
    "qemu-system-common",
    "qemu-system-data",
    "qemu-system-x86",
    "seabios",
];

const QEMU: &str = "usr/bin/qemu-system-x86_64";
/// Files that QEMU opens (its translator, ROMs of the virtual machine): folder in the image, and path in the Debian package.
const QEMU_FILES: [(&str, &str); 5] = [
    (
        "modules",
        "usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so",
    ),
    ("roms", "usr/share/seabios/bios-256k.bin"),
    ("roms", "usr/share/qemu/kvmvapic.bin"),
    ("roms", "usr/share/qemu/linuxboot_dma.bin"),
    ("roms", "usr/share/qemu/pvh.bin"),
];

/// Dynamically linked programs in the machine: name, and path in the Debian package.
const PROGRAMS: [(&str, &str); 10] = [
    ("usr/bin/ip", "bin/ip"),
    ("usr/bin/rdma", "usr/bin/rdma"),
    ("usr/bin/ibv_devices", "usr/bin/ibv_devices"),
    ("usr/bin/ibv_devinfo", "usr/bin/ibv_devinfo"),
    ("usr/bin/ibv_rc_pingpong", "usr/bin/ibv_rc_pingpong"),
    ("usr/bin/ibv_uc_pingpong", "usr/bin/ibv_uc_pingpong"),
    ("usr/bin/ibv_ud_pingpong", "usr/bin/ibv_ud_pingpong"),
    ("usr/bin/ibv_srq_pingpong", "usr/bin/ibv_srq_pingpong"),
    // libibverbs opens it by name, so no file lists it as needed.
    (
        "usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so",
        "usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so",
    ),
    (INTERPRETER, INTERPRETER),
];
const INTERPRETER: &str = "lib64/ld-linux-x86-64.so.2";

/// perftest's programs. They are in `usr/bin` of the package and `usr/lib/perftest` of the machine, where scripts start them.
const PERFTEST: [&str; 6] = [
    "ib_write_bw",
    "ib_write_lat",
    "ib_send_bw",
    "ib_send_lat",
    "ib_read_bw",
    "ib_read_lat",
];

/// The script that starts a program of perftest with `-F`. At its end, the program calibrates the processor's clock against the
/// system's. On a busy or emulated processor the calibration may fail; without `-F`, the program then exits with 1 and reports
/// nothing. With `-F` it succeeds and reports bandwidths of 0.
fn perftest_script(program: &str) -> String {
    format!("#!/bin/busybox sh\nexec /usr/lib/perftest/{program} -F \"$@\"\n")
}

/// Kernel modules that the machine loads when it boots, after their dependencies.
const MODULES: [&str; 7] = [
    "virtio_pci",
    "virtio_net",
    "virtio_console",
    "af_packet",
    // rxe requests this checksum by name, so no module lists it as needed.
    "crc32_generic",
    "ib_uverbs",
    "rdma_rxe",
];

/// Version of the format of an image; to be increased when its files are made in another way.
const FORMAT: u32 = 2;
const INIT: &str = include_str!("init.sh");

/// Files in a folder from which a virtual machine boots: a kernel, an initramfs and QEMU.
#[derive(Debug, Clone)]
pub struct Image {
    qemu: PathBuf,
    kernel: PathBuf,
    initramfs: PathBuf,
    /// Paths of the files in the machine's file system, without the leading slash.
    contents: Vec<String>,
    /// Keeps an initramfs that was made for one test; dropping it deletes the file. `None`: the image's own initramfs.
    _temporary: Option<Arc<tempfile::TempPath>>,
}

impl Image {
    /// Opens the image that [`make`](Self::make) has made in a folder.
    ///
    /// # Errors The folder has no image, or the image of another version of this crate.
    pub fn open(folder: &Path) -> Result<Self, ImageError> {
        let image = folder.join("image");
        let missing = || ImageError::Missing(folder.to_owned());
        let is_this = fs::read_to_string(image.join("recipe")).is_ok_and(|text| text == recipe());
        if !is_this {
            return Err(missing());
        }
        let contents = fs::read_to_string(image.join("contents")).map_err(|_| missing())?;
        Ok(Self {
            qemu: image.join("qemu"),
            kernel: image.join("kernel"),
            initramfs: image.join("initramfs"),
            contents: contents.lines().map(str::to_owned).collect(),
            _temporary: None,
        })
    }

    /// Makes the image in a folder if it does not exist: downloads packages (about 110 MB, kept there for the next version) and takes
    /// the needed files out of them. Needs Debian's apt and dpkg on an x86-64, but no privilege.
    pub fn make(folder: &Path, limit: Duration) -> Result<Self, ImageError> {
        if let Ok(image) = Self::open(folder) {
            return Ok(image);
        }
        let deadline = Deadline::within(limit);
        let debs = folder.join("packages");
        fs::create_dir_all(&debs).map_err(ImageError::at(&debs))?;
        // Like cargo in its target folder: backups skip the folder.
        let tag = folder.join("CACHEDIR.TAG");
        fs::write(&tag, "Signature: 8a477f597d28d172789f06886806bc55\n")
            .map_err(ImageError::at(&tag))?;
        let mut wanted = packages::with_libraries(&PACKAGES, deadline)?;
        wanted.push(packages::kernel_of(KERNEL, deadline)?);
        let files = packages::download(&debs, &wanted, deadline)?;
        remove_others(&debs, &files)?;

        let unpacked = temporary_folder(folder)?;
        for file in &files {
            packages::unpack(&debs.join(file), unpacked.path(), deadline)?;
        }
        let made = temporary_folder(folder)?;
        write_image(unpacked.path(), made.path())?;
        let image = folder.join("image");
        match fs::remove_dir_all(&image) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ImageError::at(&image)(error));
            }
            _ => {}
        }
        fs::rename(made.keep(), &image).map_err(ImageError::at(&image))?;
        Self::open(folder)
    }

    /// Adds programs of this computer to a copy of the image, each with its path in the machine (without the leading slash), and the
    /// libraries of this computer that they need and the image lacks.
    pub fn with_programs(&self, programs: &[(&str, &Path)]) -> Result<Self, ImageError> {
        let paths: Vec<PathBuf> = programs
            .iter()
            .map(|(_, path)| (*path).to_owned())
            .collect();
        let known = |name: &str| self.contents.contains(&library(name));
        let libraries = elf::libraries(Path::new("/"), &paths, &known)?;
        let libraries = libraries
            .into_iter()
            .map(|(name, path)| (library(&name), path));
        let programs = programs
            .iter()
            .map(|(name, path)| ((*name).to_owned(), (*path).to_owned()));
        let files: BTreeMap<String, PathBuf> = programs.chain(libraries).collect();

        let extended = tempfile::NamedTempFile::new().map_err(ImageError::at(Path::new("/tmp")))?;
        let path = extended.path().to_owned();
        let at = ImageError::at(&path);
        // The kernel reads one archive after the other.
        let mut base = fs::File::open(&self.initramfs).map_err(ImageError::at(&self.initramfs))?;
        io::copy(&mut base, &mut extended.as_file()).map_err(&at)?;
        let mut archive = Archive::new(BufWriter::new(extended.as_file()));
        pack(&mut archive, &files, &at)?;
        archive
            .finish()
            .and_then(|mut to| to.flush())
            .map_err(&at)?;
        Ok(Self {
            qemu: self.qemu.clone(),
            kernel: self.kernel.clone(),
            initramfs: path.clone(),
            contents: self
                .contents
                .iter()
                .cloned()
                .chain(files.into_keys())
                .collect(),
            _temporary: Some(Arc::new(extended.into_temp_path())),
        })
    }

    pub(crate) fn qemu(&self) -> &Path {
        &self.qemu
    }

    pub(crate) fn kernel(&self) -> &Path {
        &self.kernel
    }

    pub(crate) fn initramfs(&self) -> &Path {
        &self.initramfs
    }
}

/// Adds programs and libraries to the archive. `files`: path in the machine, and path on this computer.
fn pack<W: Write>(
    archive: &mut Archive<W>,
    files: &BTreeMap<String, PathBuf>,
    at: impl Fn(io::Error) -> ImageError,
) -> Result<(), ImageError> {
    for (name, path) in files {
        let content = fs::read(path).map_err(ImageError::at(path))?;
        archive.file(name, 0o755, &content).map_err(&at)?;
    }
    Ok(())
}

/// Text that contains everything that determines an image's content; if it differs, the image has to be made again.
fn recipe() -> String {
    let scripts = PERFTEST.map(perftest_script).concat();
    format!(
        "{FORMAT} {KERNEL} {PACKAGES:?} {QEMU_FILES:?} {PROGRAMS:?} {MODULES:?}\n{scripts}{INIT}"
    )
}

/// Path of a shared library in the machine's file system.
fn library(name: &str) -> String {
    format!("lib/x86_64-linux-gnu/{name}")
}

fn temporary_folder(folder: &Path) -> Result<tempfile::TempDir, ImageError> {
    tempfile::Builder::new()
        .prefix("making-")
        .tempdir_in(folder)
        .map_err(ImageError::at(folder))
}

/// Removes the Debian packages in a folder that are not in `files`: those of an older kernel or library.
fn remove_others(folder: &Path, files: &[String]) -> Result<(), ImageError> {
    let at = ImageError::at(folder);
    for entry in fs::read_dir(folder).map_err(&at)? {
        let entry = entry.map_err(&at)?;
        if !files.iter().any(|file| entry.file_name() == **file) {
            fs::remove_file(entry.path()).map_err(ImageError::at(&entry.path()))?;
        }
    }
    Ok(())
}

/// Writes the files of an image (kernel, initramfs, QEMU, contents, recipe) into a folder, from packages unpacked below `root`.
fn write_image(root: &Path, to: &Path) -> Result<(), ImageError> {
    let (version, kernel) = kernel(&root.join("boot"))?;
    let modules = modules(&root.join("lib/modules").join(version))?;
    let order: Vec<&str> = modules.iter().map(|(name, _)| &**name).collect();
    let order = order.join("\n") + "\n";

    let perftest = PERFTEST.map(|name| {
        let path = root.join(format!("usr/bin/{name}"));
        (format!("usr/lib/perftest/{name}"), path)
    });
    let programs = PROGRAMS.map(|(name, path)| (name.to_owned(), root.join(path)));
    let mut files: BTreeMap<String, PathBuf> = programs.into_iter().chain(perftest).collect();
    let paths: Vec<PathBuf> = files.values().cloned().collect();
    let libraries = elf::libraries(root, &paths, &|_| false)?;
    files.extend(
        libraries
            .iter()
            .map(|(name, path)| (library(name), path.clone())),
    );
    files.insert("bin/busybox".to_owned(), root.join("bin/busybox"));
    let driver = "etc/libibverbs.d/rxe.driver";
    files.insert(driver.to_owned(), root.join(driver));
    for (name, path) in modules {
        files.insert(format!("modules/{name}.ko"), path);
    }

    let initramfs = to.join("initramfs");
    let at = ImageError::at(&initramfs);
    let file = fs::File::create(&initramfs).map_err(&at)?;
    // Not compressed: unpacking in the machine would take longer than reading here.
    let mut archive = Archive::new(BufWriter::new(file));
    archive.file("init", 0o755, INIT.as_bytes()).map_err(&at)?;
    archive
        .file("modules/order", 0o644, order.as_bytes())
        .map_err(&at)?;
    for name in PERFTEST {
        let script = perftest_script(name);
        archive
            .file(&format!("usr/bin/{name}"), 0o755, script.as_bytes())
            .map_err(&at)?;
    }
    pack(&mut archive, &files, &at)?;
    archive
        .finish()
        .and_then(|mut to| to.flush())
        .map_err(&at)?;

    let packed = fs::read(&kernel).map_err(ImageError::at(&kernel))?;
    let path = to.join("kernel");
    fs::write(&path, unpacked(&packed).unwrap_or(packed)).map_err(ImageError::at(&path))?;
    write_qemu(root, &to.join("qemu"))?;
    let contents: Vec<String> = files.into_keys().collect();
    let contents = contents.join("\n");
    for (name, text) in [("contents", &contents), ("recipe", &recipe())] {
        let path = to.join(name);
        fs::write(&path, text).map_err(ImageError::at(&path))?;
    }
    Ok(())
}

/// Copies QEMU from packages unpacked below `root` into a folder: `qemu` itself, `modules`, `roms`, and `lib` with its loader.
fn write_qemu(root: &Path, to: &Path) -> Result<(), ImageError> {
    let mut files = vec![(to.join("qemu"), root.join(QEMU))];
    for (folder, path) in QEMU_FILES {
        let name = Path::new(path).file_name().unwrap_or_default();
        files.push((to.join(folder).join(name), root.join(path)));
    }
    let libraries = elf::libraries(root, &[root.join(QEMU)], &|_| false)?;
    files.extend(
        libraries
            .into_iter()
            .map(|(name, path)| (to.join("lib").join(name), path)),
    );
    for (to, from) in files {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).map_err(ImageError::at(folder))?;
        }
        fs::copy(&from, &to).map_err(ImageError::at(&from))?;
    }
    Ok(())
}

/// Version and path of the kernel in a `boot` folder.
fn kernel(boot: &Path) -> Result<(String, PathBuf), ImageError> {
    for entry in fs::read_dir(boot).map_err(ImageError::at(boot))? {
        let path = entry.map_err(ImageError::at(boot))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if let Some(version) = name.strip_prefix("vmlinuz-") {
            return Ok((version.to_owned(), path));
        }
    }
    Err(ImageError::Package(KERNEL.to_owned()))
}

fn modules(folder: &Path) -> Result<Vec<(String, PathBuf)>, ImageError> {
    let builtin = folder.join("modules.builtin");
    let text = fs::read_to_string(&builtin).map_err(ImageError::at(&builtin))?;
    let names = text.lines().filter_map(|line| Path::new(line).file_stem());
    let names: Vec<String> = names
        .map(|name| name.to_string_lossy().replace('-', "_"))
        .collect();
    elf::modules(&folder.join("kernel"), &MODULES, &names)
}
