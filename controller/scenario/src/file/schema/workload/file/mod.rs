//! Reads a workload from its own file. Its programs run in roles, to which the scenario assigns hosts, and its texts contain
//! parameters, to which the scenario assigns values.
//!
//! A workload file names nothing of the scenario, so that many scenarios can use it, and no other file. Each error is reported
//! in the file that causes it: the workload file, or the scenario that names it.

mod parameters;

use std::collections::{BTreeMap, BTreeSet};

use super::commands::{self, Listed};
use super::{COMMANDS, RawWorkload};
use crate::diagnostic::{Code, Sink, Source, Span, Spanned, unknown};
use crate::file::schema::Given;
use crate::file::schema::probes::{self, RawProbe};
use crate::file::schema::reader::{self, Fields};
use crate::file::schema::shape::{Object, Shape, may, needed};
use crate::file::schema::{RawFile, Role};
use crate::file::yaml::{self, Entry, Kind, Node};
use crate::model::workload::commands::Command;
use crate::model::workload::{Commands, Workload, WorkloadSource};
use parameters::Parameters;

/// The version of workload files that this program reads.
const VERSION: u64 = 1;
const MAX_ROLES: usize = 64;

pub(in crate::file::schema) static FROM_FILE: Object = Object {
    what: "a workload from a file",
    keys: &[
        needed("file", Shape::Text, "a workload file, relative to this one"),
        may(
            "hosts",
            Shape::Map(&Shape::Name("a host")),
            "by its roles: the hosts that play them; those of the same name",
        ),
        may(
            "with",
            Shape::Map(&Shape::Value),
            "values of its parameters; those that it has",
        ),
        may("commands", COMMANDS, "further ones, of this scenario's own"),
    ],
};

pub(in crate::file::schema) static WORKLOAD_FILE: Object = Object {
    what: "a workload file",
    keys: &[
        needed(
            "weir-workload",
            Shape::Integer(VERSION, VERSION),
            "the version of the schema",
        ),
        needed(
            "hosts",
            Shape::Names("a role"),
            "the roles in which its programs run; scenarios give them hosts",
        ),
        needed("commands", COMMANDS, "programs; `host` is a role"),
        may("description", Shape::Text, "for people"),
        may(
            "parameters",
            Shape::Map(&Shape::Value),
            "by name: default values of `{NAME}` in its texts",
        ),
        may(
            "probes",
            Shape::Map(&Shape::Object(&probes::PROBE)),
            "what asks its services; hosts are roles",
        ),
    ],
};

/// The key `weir-workload` with its version, which marks a file as a workload file; `None` for other files.
pub(in crate::file::schema) fn version_of(root: &Node) -> Option<&Entry> {
    let Kind::Map(entries) = &root.kind else {
        return None;
    };
    let entry = |key: &str| entries.iter().find(|entry| entry.key == key);
    entry("weir-workload").filter(|_| entry("weir").is_none())
}

/// Whether the section `workload` names a workload file.
pub(super) fn is_named(section: &Node) -> bool {
    section.tag.is_none() && section.get("file").is_some()
}

/// Reads the section `workload` as `{file: …, hosts: …, with: …, commands: …}`.
pub(super) fn read(sink: &mut Sink<'_>, node: &Node, given: &Given) -> Option<RawWorkload> {
    let fields = reader::fields(sink, node, &FROM_FILE)?;
    let name = fields.text(sink, "file")?;
    with(sink, &name, Some(&fields), given)
}

/// Reads the section `workload` as `!file PATH`.
pub(super) fn read_alone(sink: &mut Sink<'_>, node: &Node, given: &Given) -> Option<RawWorkload> {
    let name = reader::text(sink, node, "a workload file")?;
    with(sink, &name, None, given)
}

/// Reads the workload file with the hosts and values that the scenario assigns in the other keys of the section.
fn with(
    sink: &mut Sink<'_>,
    name: &Spanned<String>,
    beside: Option<&Fields<'_>>,
    given: &Given,
) -> Option<RawWorkload> {
    let beside = |key: &str| beside.and_then(|fields| fields.get(key));
    let source = source(sink, name, given)?;
    let text = Source {
        file: &source.file,
        text: &source.text,
    };
    let mut file = Sink::new(text);
    let read = from_source(
        sink,
        &mut file,
        name,
        &source.file,
        beside("hosts"),
        beside("with"),
    );
    sink.adopt(file);
    let File {
        mut commands,
        probes,
        mut hosts,
        roles,
    } = read?;
    for command in &mut commands {
        command.file = Some(source.file.clone());
    }
    if let Some(node) = beside("commands") {
        let own = commands::list(sink, node, &commands)?;
        hosts.extend(own.hosts.iter().cloned());
        let is_whole = own.is_whole;
        let folders = own.folders;
        commands.extend(own.commands);
        if is_whole {
            commands::check_folders(sink, &folders, &commands);
        }
    }
    let place = beside("commands").map_or(name.span, |node| node.span);
    if commands.iter().all(Command::is_service) {
        commands::report_no_driver(sink, place)
            .hint("the workload file has only services: add drivers in `commands:` beside `file:`");
    }
    Some(RawWorkload {
        workload: Workload::Commands(Commands { commands }),
        hosts,
        switches: Vec::new(),
        file: Some(RawFile {
            source,
            probes,
            roles,
        }),
    })
}

fn source(sink: &mut Sink<'_>, name: &Spanned<String>, given: &Given) -> Option<WorkloadSource> {
    match &given.workload {
        Some(Ok(source)) => return Some(source.clone()),
        Some(Err(why)) => {
            let message = format!("cannot read workload file `{}`: {why}", name.value);
            sink.error(Code::Workload, name.span, message)
                .hint("the path is relative to the scenario");
        }
        None => {
            let message = format!(
                "workload file `{}` is missing from the given files",
                name.value
            );
            sink.error(Code::Workload, name.span, message);
        }
    }
    None
}

/// The content of a workload file, with roles replaced by the scenario's hosts.
struct File {
    commands: Vec<Command>,
    probes: Vec<RawProbe>,
    /// Names of the hosts that the scenario assigns to roles, with positions.
    hosts: Vec<Spanned<String>>,
    /// Roles to which the scenario assigns no host.
    roles: Vec<Role>,
}

/// Reads the workload file. `sink` takes errors of the scenario, `file` errors of the workload file.
fn from_source(
    sink: &mut Sink<'_>,
    file: &mut Sink<'_>,
    name: &Spanned<String>,
    path: &str,
    hosts: Option<&Node>,
    values: Option<&Node>,
) -> Option<File> {
    let root = yaml::parse(file)?;
    if root.get("weir").is_some() && root.get("weir-workload").is_none() {
        let message = format!("`{}` is a scenario, not a workload file", name.value);
        sink.error(Code::Workload, name.span, message)
            .hint("a workload file starts with `weir-workload: 1`, and has `hosts` and `commands`");
        return None;
    }
    let fields = reader::fields(file, &root, &WORKLOAD_FILE)?;
    version(file, fields.get("weir-workload"));
    fields.text(file, "description");
    let roles = roles(file, &fields)?;
    let players = players(sink, file.source(), &roles, hosts);
    let mut parameters = Parameters::declared(file, fields.get("parameters"))?;
    parameters.set(sink, file.source(), values);
    let (commands, probes) = (fields.get("commands")?, fields.get("probes"));
    let commands = parameters.fill(file, commands)?;
    let probes = match probes {
        Some(node) => Some(parameters.fill(file, node)?),
        None => None,
    };
    parameters.check_used(file);
    let Listed {
        commands,
        hosts,
        folders,
        is_whole,
    } = commands::list(file, &commands, &[])?;
    let errors = file.errors();
    let probes = probes.map(|node| probes::read(file, &node));
    let probes = probes.unwrap_or_default();
    // A refused command may have been the one that uses a role.
    let all_are_known = is_whole && file.errors() == errors;
    if is_whole {
        let asked = probes.iter().flat_map(|probe| &probe.folders);
        let folders: Vec<_> = folders.iter().chain(asked).cloned().collect();
        commands::check_folders(file, &folders, &commands);
    }
    let asked = probes
        .iter()
        .flat_map(|probe| [&probe.from].into_iter().chain(&probe.hosts));
    let named: Vec<&Spanned<String>> = hosts.iter().chain(asked).collect();
    check_roles(file, &roles, &named, all_are_known);
    let host = |role: &str| {
        let player = players.get(role);
        player.map_or_else(|| role.to_owned(), |host| host.value.clone())
    };
    let commands = commands.into_iter();
    Some(File {
        commands: commands.map(|command| command.with_hosts(&host)).collect(),
        probes: probes
            .into_iter()
            .map(|probe| probe.of_file(path, &host))
            .collect(),
        roles: roles
            .iter()
            .filter(|role| !players.contains_key(&role.value))
            .map(|role| Role {
                name: Spanned::new(role.value.clone(), name.span),
                declared: role.span,
            })
            .collect(),
        hosts: players.into_values().collect(),
    })
}

fn version(file: &mut Sink<'_>, node: Option<&Node>) {
    let Some(node) = node else { return };
    let integer = match node.kind {
        Kind::Number { integer, .. } => integer,
        _ => None,
    };
    if integer != Some(i128::from(VERSION)) {
        let message = format!(
            "this program reads version {VERSION} of workload files; found {}",
            node.describe()
        );
        file.error(Code::Version, node.span, message)
            .hint(format!("write `weir-workload: {VERSION}`"));
    }
}

fn roles(file: &mut Sink<'_>, fields: &Fields<'_>) -> Option<Vec<Spanned<String>>> {
    let roles = fields.names(file, "hosts")?;
    if roles.is_empty() || roles.len() > MAX_ROLES {
        let message = format!(
            "a workload must have 1 to {MAX_ROLES} roles; found {}",
            roles.len()
        );
        file.error(Code::OutOfRange, fields.get("hosts")?.span, message);
        return None;
    }
    for (index, role) in roles.iter().enumerate() {
        if roles[..index].iter().any(|other| other.value == role.value) {
            let message = format!("role `{}` is declared twice", role.value);
            file.error(Code::Duplicate, role.span, message);
        }
    }
    Some(roles)
}

/// Reads which host the scenario assigns to each role.
fn players(
    sink: &mut Sink<'_>,
    file: Source<'_>,
    roles: &[Spanned<String>],
    node: Option<&Node>,
) -> BTreeMap<String, Spanned<String>> {
    let entries: &[Entry] = node
        .and_then(|node| reader::map(sink, node, "`hosts`"))
        .unwrap_or_default();
    let mut players = BTreeMap::new();
    for Entry {
        key,
        key_span,
        value,
    } in entries
    {
        if roles.iter().all(|role| role.value != *key) {
            let role = Spanned::new(key.clone(), *key_span);
            let names = roles.iter().map(|role| role.value.as_str());
            let place = roles.first().map_or(Span::default(), |role| role.span);
            unknown(sink, "role of the workload file", &role, names).related(
                &file,
                place,
                "its roles are declared here",
            );
        }
        if let Some(host) = reader::name(sink, value, "a host") {
            players.insert(key.clone(), host);
        }
    }
    players
}

/// Reports host names in the workload file that are no roles, and roles that no command and no probe uses.
fn check_roles(
    file: &mut Sink<'_>,
    roles: &[Spanned<String>],
    named: &[&Spanned<String>],
    all_are_known: bool,
) {
    let mut told = BTreeSet::new();
    for name in named {
        let names = roles.iter().map(|role| role.value.as_str());
        if names.clone().all(|role| role != name.value) && told.insert(name.span) {
            unknown(file, "role", name, names);
        }
    }
    for role in roles {
        if all_are_known && named.iter().all(|name| name.value != role.value) {
            let message = format!("no command and no probe uses role `{}`", role.value);
            file.error(Code::UnknownName, role.span, message)
                .hint("leave it out");
        }
    }
}
