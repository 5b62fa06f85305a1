//! Finds the files that programs, libraries and kernel modules depend on, as their ELF files list them.

use object::read::elf::{Dyn, ElfFile64};
use object::{Endianness, Object, ObjectSection};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use crate::ImageError;

/// Folders of Debian's shared libraries, relative to the root of a file system.
const LIBRARIES: [&str; 2] = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];

/// The shared libraries that programs need, directly or indirectly: each name with its path below `root`. Libraries in
/// `known` are left out.
pub(crate) fn libraries(
    root: &Path,
    programs: &[PathBuf],
    known: &dyn Fn(&str) -> bool,
) -> Result<BTreeMap<String, PathBuf>, ImageError> {
    let mut found = BTreeMap::new();
    let mut waiting: VecDeque<PathBuf> = programs.iter().cloned().collect();
    while let Some(path) = waiting.pop_front() {
        for name in needed(&path)? {
            if known(&name) || found.contains_key(&name) {
                continue;
            }
            let candidates = LIBRARIES.iter().map(|folder| root.join(folder).join(&name));
            let Some(library) = candidates.into_iter().find(|path| path.is_file()) else {
                return Err(ImageError::Library { name, of: path });
            };
            waiting.push_back(library.clone());
            found.insert(name, library);
        }
    }
    Ok(found)
}

/// Names of the shared libraries that an ELF file lists (DT_NEEDED); empty for a static program.
fn needed(path: &Path) -> Result<Vec<String>, ImageError> {
    let bytes = read(path)?;
    let broken = |source| ImageError::Elf {
        path: path.to_owned(),
        source,
    };
    let file = ElfFile64::<Endianness>::parse(&*bytes).map_err(broken)?;
    let (endian, sections) = (file.endian(), file.elf_section_table());
    let Some((entries, link)) = sections.dynamic(endian, &*bytes).map_err(broken)? else {
        return Ok(Vec::new());
    };
    let strings = sections.strings(endian, &*bytes, link).map_err(broken)?;
    let needed = entries
        .iter()
        .filter(|entry| entry.tag32(endian) == Some(object::elf::DT_NEEDED));
    needed
        .map(|entry| {
            let name = entry.string(endian, strings).map_err(broken)?;
            Ok(String::from_utf8_lossy(name).into_owned())
        })
        .collect()
}

/// Kernel modules in the order in which they are loaded, each after its dependencies. They are below `folder`; those in
/// `builtin` are part of the kernel.
pub(crate) fn modules(
    folder: &Path,
    wanted: &[&str],
    builtin: &[String],
) -> Result<Vec<(String, PathBuf)>, ImageError> {
    let mut index = BTreeMap::new();
    index_modules(folder, &mut index)?;
    let mut ordered = Vec::new();
    for name in wanted {
        load(name, &index, builtin, &mut ordered)?;
    }
    Ok(ordered)
}

fn load(
    name: &str,
    index: &BTreeMap<String, PathBuf>,
    builtin: &[String],
    ordered: &mut Vec<(String, PathBuf)>,
) -> Result<(), ImageError> {
    let name = name.replace('-', "_");
    if builtin.contains(&name) || ordered.iter().any(|(other, _)| *other == name) {
        return Ok(());
    }
    let Some(path) = index.get(&name) else {
        return Err(ImageError::Module(name));
    };
    // The kernel's build refuses cycles.
    for dependency in depends(path)? {
        load(&dependency, index, builtin, ordered)?;
    }
    ordered.push((name, path.clone()));
    Ok(())
}

fn index_modules(folder: &Path, index: &mut BTreeMap<String, PathBuf>) -> Result<(), ImageError> {
    let entries = fs::read_dir(folder).map_err(ImageError::at(folder))?;
    for entry in entries {
        let path = entry.map_err(ImageError::at(folder))?.path();
        if path.is_dir() {
            index_modules(&path, index)?;
        } else if path.extension().is_some_and(|extension| extension == "ko")
            && let Some(stem) = path.file_stem()
        {
            index.insert(stem.to_string_lossy().replace('-', "_"), path.clone());
        }
    }
    Ok(())
}

/// Names of the modules that a kernel module depends on: the field `depends` in its section .modinfo.
fn depends(path: &Path) -> Result<Vec<String>, ImageError> {
    let bytes = read(path)?;
    let broken = |source| ImageError::Elf {
        path: path.to_owned(),
        source,
    };
    let file = ElfFile64::<Endianness>::parse(&*bytes).map_err(broken)?;
    let Some(section) = file.section_by_name(".modinfo") else {
        return Ok(Vec::new());
    };
    let fields = section.data().map_err(broken)?.split(|byte| *byte == 0);
    let names = fields.filter_map(|field| field.strip_prefix(b"depends="));
    let names = names.flat_map(|names| names.split(|byte| *byte == b','));
    let names = names.filter(|name| !name.is_empty());
    Ok(names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect())
}

fn read(path: &Path) -> Result<Vec<u8>, ImageError> {
    fs::read(path).map_err(ImageError::at(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_needs_the_c_library() -> Result<(), ImageError> {
        let this = std::env::current_exe().expect("the test's own binary");
        let of_this = libraries(Path::new("/"), std::slice::from_ref(&this), &|_| false)?;
        assert!(of_this.contains_key("libc.so.6"), "{of_this:?}");
        let none = libraries(Path::new("/nowhere"), &[this], &|_| false);
        assert!(matches!(none, Err(ImageError::Library { .. })), "{none:?}");
        Ok(())
    }
}
