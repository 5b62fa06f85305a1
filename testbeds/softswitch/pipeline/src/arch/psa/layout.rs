//! Assigns slots of the frame to the parameters of PSA's blocks.

use super::pipe::{Laid, Pipe};
use crate::arch::region::{Binder, MetaField, Region};
use crate::compile::Compiler;
use crate::error::LoadError;
use p4lang::ir::Package;

#[derive(Debug)]
pub(super) struct PsaIngress {
    pub(super) pipe: Pipe,
    pub(super) resubmit_in: Region,
    pub(super) recirculate_in: Region,
    pub(super) clone_meta: Region,
    pub(super) resubmit_meta: Region,
    pub(super) normal_meta: Region,
    pub(super) class_of_service: MetaField,
    pub(super) resubmit: MetaField,
    pub(super) multicast_group: MetaField,
    pub(super) egress_port: MetaField,
}

#[derive(Debug)]
pub(super) struct Egress {
    pub(super) pipe: Pipe,
    pub(super) normal_in: Region,
    pub(super) clone_i2e_in: Region,
    pub(super) clone_e2e_in: Region,
    pub(super) clone_meta: Region,
    pub(super) recirculate_meta: Region,
    pub(super) class_of_service: MetaField,
    pub(super) instance: MetaField,
    pub(super) deparser_port: MetaField,
}

type Named = (MetaField, &'static str);

impl Pipe {
    /// The metadata fields that decide whether and to which session the packet is cloned.
    fn cloning(&self, frame: &[u64]) -> Vec<Named> {
        let mut fields = vec![(self.blocks.clone, "clone")];
        if self.blocks.clone.get(frame) != 0 {
            fields.push((self.clone_session, "clone_session_id"));
        }
        fields
    }
}

impl PsaIngress {
    /// Metadata fields that decide about a packet after ingress (PSA 6.2). A field is left out if an earlier one has decided.
    pub(super) fn deciding(&self, frame: &[u64]) -> Vec<Named> {
        let mut fields = self.pipe.cloning(frame);
        let chain = [
            (self.pipe.blocks.drop, "drop"),
            (self.resubmit, "resubmit"),
            (self.multicast_group, "multicast_group"),
            (self.egress_port, "egress_port"),
        ];
        let ends = chain.iter().position(|(field, _)| field.get(frame) != 0);
        let ends = ends.unwrap_or(chain.len() - 1);
        fields.extend(&chain[..=ends]);
        // A packet for a port or group joins the queue of its class.
        if ends >= 2 {
            fields.push((self.class_of_service, "class_of_service"));
        }
        fields
    }

    pub(super) fn load(
        compiler: &mut Compiler<'_>,
        package: &Package,
    ) -> Result<PsaIngress, LoadError> {
        let laid = Laid::<5, 3>::out(compiler, package, [1, 2, 3])?;
        let [headers, meta, _, resubmit_in, recirculate_in] = laid.parser.map(|(region, _)| region);
        let own @ [clone_meta, resubmit_meta, normal_meta] =
            laid.deparser.map(|(region, _)| region);
        let mut b = Binder { compiler };
        let mut field = |name| b.field(laid.output, name);
        let class_of_service = field("class_of_service")?;
        let resubmit = field("resubmit")?;
        let multicast_group = field("multicast_group")?;
        let egress_port = field("egress_port")?;
        let deparser = [&own[..], &[headers, meta, laid.output.0]].concat();
        let names = ["ingress_port", "ingress_timestamp"];
        Ok(PsaIngress {
            pipe: laid.compile(compiler, names, &deparser)?,
            resubmit_in,
            recirculate_in,
            clone_meta,
            resubmit_meta,
            normal_meta,
            class_of_service,
            resubmit,
            multicast_group,
            egress_port,
        })
    }
}

impl Egress {
    /// The metadata fields that decide about a packet after egress (PSA 6.5): drop, clone, recirculation.
    pub(super) fn deciding(&self, frame: &[u64]) -> Vec<Named> {
        let mut fields = self.pipe.cloning(frame);
        fields.push((self.pipe.blocks.drop, "drop"));
        fields
    }

    pub(super) fn load(
        compiler: &mut Compiler<'_>,
        package: &Package,
    ) -> Result<Egress, LoadError> {
        let laid = Laid::<6, 3>::out(compiler, package, [1, 2, 6])?;
        let [headers, meta, _, normal_in, clone_i2e_in, clone_e2e_in] =
            laid.parser.map(|(region, _)| region);
        let [clone_meta, recirculate_meta, edstd] = laid.deparser.map(|(region, _)| region);
        let mut b = Binder { compiler };
        let class_of_service = b.field(laid.istd, "class_of_service")?;
        let instance = b.field(laid.istd, "instance")?;
        let deparser_port = b.field(laid.deparser[2], "egress_port")?;
        let deparser = [
            clone_meta,
            recirculate_meta,
            headers,
            meta,
            laid.output.0,
            edstd,
        ];
        let names = ["egress_port", "egress_timestamp"];
        Ok(Egress {
            pipe: laid.compile(compiler, names, &deparser)?,
            normal_in,
            clone_i2e_in,
            clone_e2e_in,
            clone_meta,
            recirculate_meta,
            class_of_service,
            instance,
            deparser_port,
        })
    }
}
