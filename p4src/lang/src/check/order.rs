//! Keeps P4's order of evaluation (P4_16 1.2.5, sections 6.8, 8.1 and 12.1): a value or lvalue that is evaluated before a later
//! call keeps its state from that time. Only what the call may change is copied.

use super::Checker;
use super::value::{LVal, Val};
use crate::ir::{self, Access, ExprKind, StmtKind};
use crate::source::Span;
use hashbrown::HashSet;

/// The variables and parts of variables to which statements may write.
#[derive(Default)]
pub(crate) struct Writes {
    /// Written variables, each with the path of fields to the written part.
    places: HashSet<(ir::VarId, Vec<u32>)>,
    /// Whether the statements may write to any variable of the control.
    all: bool,
}

impl Writes {
    /// Whether an expression may have another value after the statements than before.
    pub(crate) fn reach(&self, e: &ir::Expr) -> bool {
        match &e.kind {
            ExprKind::Const(_) | ExprKind::InvalidHeader => false,
            ExprKind::Read(lv) | ExprKind::IsValid(lv) | ExprKind::LastIndex(lv) => {
                self.reach_place(lv)
            }
            ExprKind::Unary(_, a) | ExprKind::Cast(a) | ExprKind::Slice(a, _, _) => self.reach(a),
            ExprKind::Binary(_, a, b) | ExprKind::Concat(a, b) => self.reach(a) || self.reach(b),
            ExprKind::Mux(a, b, c) => self.reach(a) || self.reach(b) || self.reach(c),
            ExprKind::Tuple(items) => items.iter().any(|i| self.reach(i)),
        }
    }

    /// Whether an lvalue may have another value, or denote another element, after the statements than before.
    fn reach_place(&self, lv: &ir::LValue) -> bool {
        let moves = |a: &Access| matches!(a, Access::Index(e) if self.reach(e));
        let read = fields(lv);
        // Different fields do not overlap; the elements that an index selects may.
        let touches = |(var, written): &(ir::VarId, Vec<u32>)| {
            *var == lv.var && written.iter().zip(&read).all(|(a, b)| a == b)
        };
        self.all || self.places.iter().any(touches) || lv.path.iter().any(moves)
    }

    fn add(&mut self, lv: &ir::LValue) {
        self.places.insert((lv.var, fields(lv)));
    }

    fn args(&mut self, args: &[ir::Arg]) {
        for arg in args {
            if let ir::Arg::Out(lv) | ir::Arg::InOut(lv) | ir::Arg::InOutSaved { to: lv, .. } = arg
            {
                self.add(lv);
            }
        }
    }

    fn block(&mut self, block: &[ir::Stmt], externs: &[ir::ExternInstance]) {
        for stmt in block {
            self.stmt(&stmt.kind, externs);
        }
    }

    fn stmt(&mut self, stmt: &StmtKind, externs: &[ir::ExternInstance]) {
        match stmt {
            StmtKind::Assign(lv, _)
            | StmtKind::Reset(lv)
            | StmtKind::SetValid(lv)
            | StmtKind::SetInvalid(lv)
            | StmtKind::Push(lv, _)
            | StmtKind::Pop(lv, _)
            | StmtKind::Extract { header: lv, .. }
            | StmtKind::Lookahead { dst: lv, .. }
            | StmtKind::PacketLength { dst: lv, .. } => {
                self.add(lv);
            }
            StmtKind::If(arms, otherwise) => {
                for arm in arms {
                    self.block(&arm.before, externs);
                    self.block(&arm.then, externs);
                }
                self.block(otherwise, externs);
            }
            StmtKind::Switch { cases, default, .. } => {
                for (_, block) in cases {
                    self.block(block, externs);
                }
                self.block(default, externs);
            }
            StmtKind::Loop {
                cond_stmts,
                body,
                update,
                ..
            } => {
                for block in [cond_stmts, body, update] {
                    self.block(block, externs);
                }
            }
            StmtKind::Atomic(block, _) => self.block(block, externs),
            // Actions see the variables of their control.
            StmtKind::ApplyTable { .. } | StmtKind::CallAction(..) => self.all = true,
            StmtKind::ApplyControl(_, args)
            | StmtKind::ApplyParser(_, args)
            | StmtKind::CallFunction(_, args) => self.args(args),
            StmtKind::CallMethod {
                object,
                args,
                result,
                ..
            } => {
                // The bodies of abstract methods do too; if the object is a parameter, nothing is known about it.
                let known = externs.get(object.index());
                self.all |= known.is_none_or(|x| !x.methods.is_empty());
                self.args(args);
                result.iter().for_each(|lv| self.add(lv));
            }
            StmtKind::CallExtern { args, result, .. } => {
                self.args(args);
                result.iter().for_each(|lv| self.add(lv));
            }
            StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return
            | StmtKind::Exit
            | StmtKind::Advance { .. }
            | StmtKind::Emit { .. }
            | StmtKind::Verify(..) => {}
        }
    }
}

/// The field indices at the start of an lvalue's path.
fn fields(lv: &ir::LValue) -> Vec<u32> {
    let field = |a: &Access| match a {
        Access::Field(n) => Some(*n),
        _ => None,
    };
    lv.path.iter().map_while(field).collect()
}

fn read(lv: &ir::LValue) -> ir::Expr {
    ir::Expr {
        kind: ExprKind::Read(lv.clone()),
        ty: lv.ty.clone(),
    }
}

impl<'a> Checker<'a, '_> {
    /// Adds to `writes` what the current block's statements `from..to` may write.
    pub(crate) fn add_writes(&self, writes: &mut Writes, from: usize, to: usize) {
        if let Some(stmts) = self.unit.block.get(from..to) {
            writes.block(stmts, &self.out.externs);
        }
    }

    /// The variables and parts that a block may write.
    pub(crate) fn writes_of(&self, block: &[ir::Stmt]) -> Writes {
        let mut writes = Writes::default();
        writes.block(block, &self.out.externs);
        writes
    }

    /// The variables and parts that the current block may write from statement `from` on.
    pub(crate) fn writes_from(&self, from: usize) -> Writes {
        let mut writes = Writes::default();
        self.add_writes(&mut writes, from, self.unit.block.len());
        writes
    }

    /// Computes, at position `at` of the current block, those indices in an lvalue that later statements may change. Returns
    /// the number of inserted statements.
    pub(crate) fn freeze(
        &mut self,
        place: &mut LVal,
        at: usize,
        later: &Writes,
        span: Span,
    ) -> usize {
        let mut made = 0;
        for access in &mut place.lv.path {
            let Access::Index(index) = access else {
                continue;
            };
            if !later.reach(index) {
                continue;
            }
            let temp = self.temp_of(&index.ty);
            let value = std::mem::replace(&mut **index, read(&temp));
            let kind = StmtKind::Assign(temp, value);
            self.unit.block.insert(at + made, ir::Stmt { kind, span });
            made += 1;
        }
        made
    }

    /// Prepares the arguments of an extern call. Temporaries replace saved `inout` arguments, and all `out` and `inout`
    /// arguments if the call's order is not the parameters'. The returned block copies the temporaries out afterwards.
    pub(crate) fn args_for_extern(
        &mut self,
        args: ir::Args,
        span: Span,
    ) -> (Vec<ir::Arg>, ir::Block) {
        let order = args.copied_out();
        let reordered = !order.is_sorted();
        let mut args = args.into_list();
        let mut behind = ir::Block::new();
        for i in order {
            let (temp, to) = match &args[i] {
                ir::Arg::InOutSaved { value, to } => match &value.kind {
                    ExprKind::Read(temp) => (temp.clone(), to.clone()),
                    _ => continue,
                },
                ir::Arg::Out(to) | ir::Arg::InOut(to) if reordered => {
                    let temp = self.temp_of(&to.ty);
                    (temp, to.clone())
                }
                _ => continue,
            };
            if let ir::Arg::InOut(from) = &args[i] {
                let kind = StmtKind::Assign(temp.clone(), read(from));
                self.unit.block.push(ir::Stmt { kind, span });
            }
            args[i] = match &args[i] {
                ir::Arg::Out(_) => ir::Arg::Out(temp.clone()),
                _ => ir::Arg::InOut(temp.clone()),
            };
            let kind = StmtKind::Assign(to, read(&temp));
            behind.push(ir::Stmt { kind, span });
        }
        (args, behind)
    }

    fn temp_of(&mut self, ty: &ir::Type) -> ir::LValue {
        ir::LValue {
            var: self.unit.var("$tmp", ty.clone(), true),
            path: Vec::new(),
            ty: ty.clone(),
        }
    }

    /// Copies a value to a temporary at position `at`, as [`Self::keep`] does, but only if the later statements may change it.
    pub(crate) fn keep_changed(
        &mut self,
        val: Val<'a>,
        at: usize,
        later: &Writes,
        span: Span,
    ) -> Val<'a> {
        let changes = match &val {
            Val::Expr(_, e) => later.reach(e),
            Val::Place(p) => later.reach_place(&p.lv),
            Val::List(list) => list.items.iter().any(|i| match &i.val {
                Val::Expr(_, e) => later.reach(e),
                Val::Place(p) => later.reach_place(&p.lv),
                Val::List(_) => true,
                _ => false,
            }),
            _ => false,
        };
        if changes {
            self.keep(val, at, span)
        } else {
            val
        }
    }

    /// Protects an `out` or `inout` argument from calls in later arguments: its indices keep their earlier values. Returns the
    /// saved value of an `inout` argument that the calls may change, else `None` (section 6.8, steps 3 and 4).
    pub(crate) fn hold_place(
        &mut self,
        place: &mut LVal,
        copied_in: bool,
        at: usize,
        later: &Writes,
        span: Span,
    ) -> Option<ir::Expr> {
        let changes = copied_in && !place.ty.is_poison() && later.reach_place(&place.lv);
        let made = self.freeze(place, at, later, span);
        if !changes {
            return None;
        }
        let saved = Val::Place(place.clone());
        match self.keep(saved, at + made, span) {
            Val::Place(temp) => Some(temp.read().1),
            _ => None,
        }
    }
}
