// Two faults in ingress and one in egress, in declared order: what the stages of a Tofino 2 have room for. What they do adds
// up, and only a drop ends the evaluation.
control FaultEngine(inout metadata_t meta) {
    FaultUnit() u0;
    FaultUnit() u1;
    apply {
        u0.apply(meta);
        if (meta.verdict == VERDICT_FORWARD) { u1.apply(meta); }
    }
}

control EgressFaultEngine(inout metadata_t meta) {
    FaultUnit() u0;
    apply {
        u0.apply(meta);
    }
}
