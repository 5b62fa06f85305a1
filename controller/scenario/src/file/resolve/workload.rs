//! Resolves the workload: looks up the hosts on which its programs run.

use super::{host, switch};
use crate::diagnostic::{Code, Sink, Source, few_names};
use crate::file::schema::{Raw, Role, templates};
use crate::model::topology::Topology;
use crate::model::workload::commands::Command;
use crate::model::workload::{Workload, WorkloadSource};

pub(super) fn check(sink: &mut Sink<'_>, raw: &Raw) {
    let radius = raw.blast_radius.iter();
    for name in radius.flat_map(|radius| radius.hosts.iter().flatten()) {
        host(sink, &raw.topology, name);
    }
    if raw.topology.wire {
        refuse_hosts_of_ours(sink, raw);
        return;
    }
    for probe in raw.probes.iter().filter(|probe| !probe.is_of_file) {
        for name in [&probe.from].into_iter().chain(&probe.hosts) {
            host(sink, &raw.topology, name);
        }
        // Refused commands are not reported again where they are named.
        if !raw.declared.workload_is_refused {
            let commands = || commands(raw).iter().map(|command| command.name.as_str());
            templates::check_folders(sink, &probe.folders, commands);
        }
    }
    let Some(workload) = &raw.workload else {
        return;
    };
    for name in &workload.value.hosts {
        host(sink, &raw.topology, name);
    }
    for name in &workload.value.switches {
        switch(sink, &raw.topology, name);
    }
    if let Some((source, roles)) = &raw.workload_file {
        check_roles(sink, &raw.topology, source, roles);
    }
}

/// Reports roles of the workload file without an assigned host, unless the topology has a host of the role's name.
fn check_roles(sink: &mut Sink<'_>, topology: &Topology, source: &WorkloadSource, roles: &[Role]) {
    let file = Source {
        file: &source.file,
        text: &source.text,
    };
    for Role { name, declared } in roles {
        if topology.host(&name.value).is_some() {
            continue;
        }
        let role = &name.value;
        let hosts = topology.hosts.iter().map(|host| host.name.as_str());
        let message = format!("role `{role}` of the workload file has no host");
        sink.error(Code::UnknownName, name.span, message)
            .hint(format!(
                "give it one: `hosts: {{{role}: …}}`; the topology has {}",
                few_names(hosts)
            ))
            .related(&file, *declared, "the role is declared here");
    }
}

/// The user's commands; empty if the workload is of another kind.
fn commands(raw: &Raw) -> &[Command] {
    match raw
        .workload
        .as_ref()
        .map(|workload| &workload.value.workload)
    {
        Some(Workload::Commands(commands)) => &commands.commands,
        _ => &[],
    }
}

/// Refuses programs on the hosts at the two sides of a wire, because weir does not run these machines.
fn refuse_hosts_of_ours(sink: &mut Sink<'_>, raw: &Raw) {
    let hint = "start programs and probes on the machines yourself, while `weir between` runs";
    if let Some(workload) = &raw.workload {
        let message = "a wire has no `workload`: weir runs no programs at its ends";
        sink.error(Code::Topology, workload.span, message)
            .hint(hint);
    }
    if let Some(probe) = raw.probes.first() {
        let message = "a wire has no `probes`: weir runs no programs at its ends";
        sink.error(Code::Topology, probe.from.span, message)
            .hint(hint);
    }
}
