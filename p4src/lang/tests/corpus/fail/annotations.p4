@5 const bit<8> a = 1;
@name const bit<8> b = 1;
@list[1, k = 2] const bit<8> c = 1;
@open("x" const bit<8> d = 1;
