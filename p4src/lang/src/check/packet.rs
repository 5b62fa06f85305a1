//! Lowers the methods of `packet_in` and `packet_out` to dedicated statements of the IR.

use super::Checker;
use super::call::Call;
use super::fold;
use super::types::Ty;
use super::value::{LVal, Val};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;
use num_bigint::BigInt;

const ONLY_HEADERS: &str = "only headers can be extracted";

impl<'a> Checker<'a, '_> {
    /// Lowers a method call on a parameter whose type is an extern.
    pub(crate) fn call_object(
        &mut self,
        packet: ir::VarId,
        ty: &Ty,
        method: &'a ast::Ident,
        call: Call<'a, '_>,
    ) -> Option<Val<'a>> {
        let Ty::Extern(index, _) = ty else {
            return Some(Val::Poison);
        };
        let decl = self.externs[*index as usize];
        let Some(found) = self.find_method(decl, method, call.args) else {
            return Some(self.poisoned(call));
        };
        match (decl.name.name.as_str(), method.name.as_str()) {
            ("packet_in", "extract") => {
                self.extract(packet, &found.proto, call);
                None
            }
            ("packet_in", "lookahead") => Some(self.lookahead(packet, &found.proto, call)),
            ("packet_in", "advance") => {
                if let Some((_, args, _)) = self.prepare(&found.proto, &[], call)
                    && let Some(ir::Arg::In(bits)) = args.into_list().into_iter().next()
                {
                    self.emit(ir::StmtKind::Advance { packet, bits }, call.span);
                }
                None
            }
            ("packet_in", "length") => {
                self.no_args(call);
                let temp = self.temp(&Ty::Bit(32));
                let dst = temp.lv.clone();
                self.emit(ir::StmtKind::PacketLength { packet, dst }, call.span);
                Some(Val::Place(temp))
            }
            ("packet_out", "emit") => {
                self.emit_header(packet, call);
                None
            }
            _ => {
                let object = super::objects::held_by(packet);
                self.call_method(object, ty, method, call)
            }
        }
    }

    fn extract(&mut self, packet: ir::VarId, proto: &'a ast::FunctionProto, call: Call<'a, '_>) {
        let Some(first) = call.args.first() else {
            return;
        };
        if matches!(first.value.kind, ast::ExprKind::DontCare)
            && self.skip_header(packet, first.value.span, call)
        {
            return;
        }
        let Some((_, args, types)) = self.prepare(proto, &[], call) else {
            return;
        };
        let mut args = args.into_list().into_iter();
        let (header, length) = match (args.next(), args.next()) {
            (Some(ir::Arg::Out(header) | ir::Arg::InOut(header)), length) => (header, length),
            (Some(ir::Arg::Ignore), length) => match types.first() {
                Some(ty) => (self.temp(ty).lv, length),
                None => return,
            },
            _ => return,
        };
        let Some(ty) = self.header_type(&header) else {
            let span = first.value.span;
            self.err(Code::Type, span, ONLY_HEADERS);
            return;
        };
        let varbit_bits = match length {
            Some(ir::Arg::In(e)) => Some(e),
            _ => None,
        };
        if !self.fits_varbits(ty, varbit_bits.is_some(), call.span) {
            return;
        }
        self.emit(
            ir::StmtKind::Extract {
                packet,
                header,
                varbit_bits,
            },
            call.span,
        );
    }

    /// Lowers `extract<T>(_)`, which skips a header. Returns `false` for `extract<T>(_, bits)`, which has an unused result.
    fn skip_header(&mut self, packet: ir::VarId, at: Span, call: Call<'a, '_>) -> bool {
        let [ty] = call.type_args else {
            let message = "`extract(_)` does not say which header to skip";
            self.push(Diagnostic::error(Code::Type, at, message).hint("write `extract<T>(_)`"));
            return true;
        };
        let span = ty.span;
        let ty = self.resolve(ty);
        if !self.types.is_header(&ty) && !matches!(ty, Ty::Var(_) | Ty::Poison) {
            self.err(Code::Type, span, ONLY_HEADERS);
            return true;
        }
        if call.args.len() != 1 {
            return false;
        }
        match self.types.bits(&ty) {
            Some((min, max)) if min == max => {
                let bits = fold::bits(&BigInt::from(min), &ir::Type::Bit(32));
                self.emit(ir::StmtKind::Advance { packet, bits }, call.span);
            }
            _ => {
                let shown = self.types.show(&ty);
                let message = format!("{shown} has no fixed size and cannot be skipped");
                self.err(Code::Type, at, message);
            }
        }
        true
    }

    /// Checks that an extracted header has one varbit field if a length is given, and none otherwise.
    fn fits_varbits(&mut self, header: ir::TypeId, with_length: bool, span: Span) -> bool {
        let wrong = match varbit_fields(&self.types.ir[header.index()]) {
            0 if with_length => Diagnostic::error(
                Code::Type,
                span,
                "this header has no varbit field: `extract` takes no length",
            ),
            1 if !with_length => Diagnostic::error(
                Code::Type,
                span,
                "this header has a varbit field: `extract` needs its length",
            )
            .hint("write `extract(h, bits)`"),
            0 | 1 => return true,
            _ => self.two_varbits(header, span),
        };
        self.push(wrong);
        false
    }

    fn two_varbits(&self, header: ir::TypeId, span: Span) -> Diagnostic {
        let name = &self.types.ir[header.index()].name;
        let declared = self.structs.iter().find(|s| s.name.name == *name);
        let is_varbit = |f: &&ast::Field| matches!(f.ty.kind, ast::TypeKind::Varbit(_));
        let at = declared.and_then(|s| s.fields.iter().filter(is_varbit).nth(1));
        let d = Diagnostic::error(
            Code::Type,
            at.map_or(span, |f| f.name.span),
            "`extract` takes a header with at most one varbit field",
        );
        match at {
            Some(_) => d.label(span, "extracted here"),
            None => d,
        }
    }

    fn header_type(&self, lv: &ir::LValue) -> Option<ir::TypeId> {
        match lv.ty {
            ir::Type::Struct(id)
                if self
                    .types
                    .ir
                    .get(id.index())
                    .is_some_and(|t| t.kind == ast::StructKind::Header) =>
            {
                Some(id)
            }
            _ => None,
        }
    }

    fn lookahead(
        &mut self,
        packet: ir::VarId,
        proto: &'a ast::FunctionProto,
        call: Call<'a, '_>,
    ) -> Val<'a> {
        let Some((sig, _, _)) = self.prepare(proto, &[], call) else {
            return Val::Poison;
        };
        match self.types.bits(&sig.ret) {
            Some((min, max)) if min == max => {}
            _ if self.types.has_vars(&sig.ret) => {}
            _ => {
                let shown = self.types.show(&sig.ret);
                self.err(
                    Code::Type,
                    call.span,
                    format!("`lookahead` needs a type of fixed size, not {shown}"),
                );
                return Val::Poison;
            }
        }
        let temp = self.temp(&sig.ret);
        let dst = temp.lv.clone();
        self.emit(ir::StmtKind::Lookahead { packet, dst }, call.span);
        Val::Place(temp)
    }

    fn emit_header(&mut self, packet: ir::VarId, call: Call<'a, '_>) {
        let [arg] = call.args else {
            self.err(Code::Type, call.span, "`emit` takes one argument");
            return;
        };
        if let [_, more, ..] = call.type_args {
            self.err(Code::Type, more.span, "`emit` takes one type argument");
            return;
        }
        let at = arg.value.span;
        match self.expr(&arg.value, None) {
            Val::Poison => {}
            list @ Val::List(_) if !call.type_args.is_empty() => {
                let ty = self.resolve(&call.type_args[0]);
                if let Some(e) = self.coerce(list, &ty, at) {
                    self.emit_value(packet, Val::Expr(ty, e), at);
                }
            }
            Val::List(list) => {
                for item in &list.items {
                    self.emit_value(packet, item.val.clone(), item.span);
                }
            }
            val => {
                if let Some(ty) = call.type_args.first() {
                    let (wanted, found) = (self.resolve(ty), self.type_of(&val));
                    if let Some(found) = found.filter(|found| *found != wanted) {
                        return self.mismatch(at, &wanted, &found);
                    }
                }
                self.emit_value(packet, val, at);
            }
        }
    }

    fn emit_value(&mut self, packet: ir::VarId, val: Val<'a>, span: Span) {
        let place: LVal = match val {
            Val::Place(p) => p,
            other => match self.rvalue(other, span) {
                Some((ty, e)) => self.place_of(ty, e, span),
                None => return,
            },
        };
        if !self.emittable(&place.ty) {
            let message = format!(
                "`emit` takes headers, stacks, unions and structs of these, not {}",
                self.types.show(&place.ty)
            );
            self.err(Code::Type, span, message);
            return;
        }
        self.emit(
            ir::StmtKind::Emit {
                packet,
                value: place.lv,
            },
            span,
        );
    }

    fn emittable(&self, ty: &Ty) -> bool {
        match self.types.strip_new(ty) {
            Ty::Struct(i) => {
                let info = &self.types.structs[*i as usize];
                info.kind != ast::StructKind::Struct
                    || info.fields.iter().all(|(_, t)| self.emittable(t))
            }
            Ty::Stack(elem, _) => self.emittable(elem),
            Ty::Var(_) | Ty::Poison => true,
            Ty::Tuple(items) => items.iter().all(|t| self.emittable(t)),
            _ => false,
        }
    }
}

fn varbit_fields(ty: &ir::StructType) -> usize {
    ty.fields
        .iter()
        .filter(|f| matches!(f.ty, ir::Type::Varbit(_)))
        .count()
}
