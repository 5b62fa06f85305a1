//! Writes the P4 header types, the struct `headers_t`, and the deparser, which emits headers in wire order.

use super::{Program, roce};
use crate::library::{Body, Protocol, ProtocolId};
use crate::options::FrameValues;
use crate::writer::Writer;

impl Program<'_> {
    /// Whether the program declares a protocol's header: also if no state parses it but p4src/common's aggregator names it.
    fn declared(&self, id: ProtocolId, protocol: &Protocol) -> bool {
        self.slice.nodes.contains(&id) || (self.options.aggregate.is_some() && protocol.is_common())
    }

    /// Whether parser states skip the header's options: a filter needs a header behind them.
    pub(super) fn skips_options(&self, id: ProtocolId) -> bool {
        self.library.protocols[id].options().is_some() && self.slice.filters_look_beyond(id)
    }

    /// Type and instance of every header between Ethernet and payload, in wire order; with `emitted`, of emitted headers.
    fn instances(&self, emitted: bool) -> Vec<(String, String)> {
        let mut instances = Vec::new();
        for (id, protocol) in self.library.protocols.iter().enumerate() {
            match &protocol.body {
                Body::Header {
                    type_name, options, ..
                } if self.declared(id, protocol) => {
                    instances.push((type_name.clone(), protocol.name.clone()));
                    if let Some(options) = options.filter(|_| self.skips_options(id)) {
                        let words = options.max - options.first_word;
                        instances.push((
                            format!("option_word_h[{words}]"),
                            format!("{}_options", protocol.name),
                        ));
                    }
                    if protocol.has_values() && !self.options.sums_roce {
                        instances.extend(self.values());
                    }
                }
                Body::Message(_) if self.slice.nodes.contains(&id) => {
                    instances.extend(self.message_headers(id, emitted));
                }
                _ => {}
            }
        }
        // These headers follow BTH or RETH.
        if self.options.sums_roce {
            let named = |(ty, name): &(&str, &str)| ((*ty).to_owned(), (*name).to_owned());
            instances.extend(roce::BEFORE_VALUES.iter().map(named));
            instances.extend(self.values());
            instances.push(named(&roce::BEHIND_VALUES));
        }
        instances
    }

    fn values(&self) -> impl Iterator<Item = (String, String)> {
        let blocks = self.options.aggregate.map_or(0, FrameValues::blocks);
        (0..blocks).map(|n| ("values32_h".to_owned(), format!("values{n}")))
    }
}

pub(super) fn write(program: &Program<'_>, w: &mut Writer) {
    let mut types: Vec<&str> = Vec::new();
    for &id in &program.slice.nodes {
        let protocol = &program.library.protocols[id];
        let Body::Header {
            type_name,
            common: false,
            ..
        } = &protocol.body
        else {
            continue;
        };
        if types.contains(&type_name.as_str()) {
            continue;
        }
        types.push(type_name);
        w.open(format!("header {type_name}"));
        for field in &protocol.fields {
            w.line(format!("bit<{}> {};", field.bits, field.name));
        }
        w.close();
        w.blank();
    }
    if program
        .slice
        .nodes
        .iter()
        .any(|id| program.skips_options(*id))
    {
        w.line("// IPv4 and TCP options are skipped, a word at a time.");
        w.open("header option_word_h");
        w.line("bit<32> word;");
        w.close();
        w.blank();
    }
    super::message::write_types(program, w);
    w.line("// In the order of the packet.");
    w.open("struct headers_t");
    w.line("hold_h hold;");
    if program.options.waits {
        w.line("wait_h wait;");
    }
    for (ty, instance) in program.instances(false) {
        w.line(format!("{ty} {instance};"));
    }
    w.close();
    w.blank();
}

pub(super) fn write_deparser(program: &Program<'_>, w: &mut Writer) {
    w.line("// All headers except the hold header and its data, which each architecture puts in front itself.");
    w.open("control FlowDeparser(packet_out pkt, in headers_t hdr)");
    w.open("apply");
    for (_, instance) in program.instances(true) {
        w.line(format!("pkt.emit(hdr.{instance});"));
    }
    w.close();
    w.close();
    w.blank();
}
