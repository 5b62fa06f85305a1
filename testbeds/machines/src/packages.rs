//! Downloads Debian packages and unpacks them into a folder. Nothing is installed, and no privilege is needed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::ImageError;

/// Prefixes by which the names of Debian packages with libraries begin.
const LIBRARY_PREFIXES: [&str; 2] = ["lib", "zlib"];

/// Time at which making the image has to be finished.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(pub Instant);

impl Deadline {
    pub(crate) fn within(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }
}

/// Adds, to a list of Debian packages, the packages of the libraries that they depend on.
pub(crate) fn with_libraries(
    packages: &[&str],
    deadline: Deadline,
) -> Result<Vec<String>, ImageError> {
    let mut arguments = vec!["depends", "--recurse"];
    arguments.extend([
        "--no-recommends",
        "--no-suggests",
        "--no-conflicts",
        "--no-breaks",
        "--no-replaces",
        "--no-enhances",
    ]);
    arguments.extend(packages);
    let text = output("apt-cache", &arguments, deadline)?;
    // Each package stands at the start of a line, its dependencies after blanks.
    let names = text.lines().filter(|line| {
        packages.contains(line)
            || LIBRARY_PREFIXES
                .iter()
                .any(|prefix| line.starts_with(prefix))
    });
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Name of the kernel package that a metapackage depends on: `linux-image-6.1.0-56-amd64` for `linux-image-amd64`.
pub(crate) fn kernel_of(meta: &str, deadline: Deadline) -> Result<String, ImageError> {
    let text = output("apt-cache", &["depends", meta], deadline)?;
    let kernel = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .find(|name| name.starts_with("linux-image-"));
    kernel
        .map(str::to_owned)
        .ok_or_else(|| ImageError::Package(meta.to_owned()))
}

/// Downloads the newest version that apt knows of each package into a folder, unless it is there; returns the file names.
pub(crate) fn download(
    folder: &Path,
    packages: &[String],
    deadline: Deadline,
) -> Result<Vec<String>, ImageError> {
    let packages = packages.iter().map(String::as_str);
    let uris: Vec<&str> = ["download", "--print-uris"]
        .into_iter()
        .chain(packages)
        .collect();
    // 'URI' FILE SIZE HASH
    let uris = output("apt-get", &uris, deadline)?;
    let mut files = Vec::new();
    let mut missing = Vec::new();
    for line in uris.lines() {
        let mut fields = line.split_whitespace().skip(1);
        let (Some(file), Some(size)) = (fields.next(), fields.next()) else {
            continue;
        };
        let is_there = |of: fs::Metadata| Ok(of.len()) == size.parse();
        if !folder.join(file).metadata().is_ok_and(is_there) {
            // NAME_VERSION_ARCHITECTURE.deb
            missing.extend(file.split('_').next());
        }
        files.push(file.to_owned());
    }
    if !missing.is_empty() {
        let mut apt = limited("apt-get", deadline)?;
        // Otherwise root's apt downloads as a user without write permission here, and warns.
        apt.args(["-qq", "-o", "APT::Sandbox::User=root", "download"]);
        succeed(apt.args(missing).current_dir(folder), "apt-get download")?;
    }
    Ok(files)
}

/// Unpacks the files of a Debian package below the folder `root`.
pub(crate) fn unpack(package: &Path, root: &Path, deadline: Deadline) -> Result<(), ImageError> {
    let mut unpack = limited("dpkg-deb", deadline)?;
    succeed(
        unpack.arg("--extract").arg(package).arg(root),
        "dpkg-deb --extract",
    )?;
    Ok(())
}

fn output(program: &str, arguments: &[&str], deadline: Deadline) -> Result<String, ImageError> {
    let mut command = limited(program, deadline)?;
    succeed(command.args(arguments), program)
}

/// A command line that kills `program` at the deadline.
fn limited(program: &str, deadline: Deadline) -> Result<Command, ImageError> {
    let left = deadline.0.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ImageError::Late);
    }
    let mut command = Command::new("timeout");
    command.arg(format!("{:.3}", left.as_secs_f64()));
    command.arg(program).env("LC_ALL", "C");
    Ok(command)
}

fn succeed(command: &mut Command, what: &str) -> Result<String, ImageError> {
    let output = command.output().map_err(|source| ImageError::Io {
        path: what.into(),
        source,
    })?;
    if !output.status.success() {
        return Err(ImageError::Command {
            what: what.to_owned(),
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
