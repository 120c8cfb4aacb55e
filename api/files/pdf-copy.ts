import type { Pdfium } from './pdf-text.ts';

/** What a copy may hold: it is written without compressed objects, and may be larger than its original. */
const maxCopyBytes = 256 * 1024 * 1024;
/** FPDF_REMOVE_SECURITY of fpdf_save.h: everything is written anew, in the clear. */
const withoutSecurity = 3;
/** The entry of a function table that is no function: a null pointer in C. */
const nullFunction = 0;

interface WasmTable {
  set(index: number, value: unknown): void;
}

interface Wasm {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (
    module: object,
    imports: object,
  ) => { readonly exports: Readonly<Record<string, unknown>> };
}

/** Node's types know nothing of WebAssembly. */
const { WebAssembly: wasm } = globalThis as unknown as { readonly WebAssembly: Wasm };

/** `(module (type (func (param i32 i32 i32) (result i32))) (import "e" "f" (func (type 0))) (export "f" (func 0)))` */
const passedOn = Uint8Array.from(
  Buffer.from('0061736d0100000001080160037f7f7f017f02070101650166000007050101660000', 'hex'),
);

type SaveAsCopy = (document: number, writer: number, flags: number) => number;
type WriteBlock = (self: number, address: number, length: number) => number;

/** A table takes functions of WebAssembly alone: a module that passes the call on makes one of ours. */
function toWasmFunction(write: WriteBlock): unknown {
  return new wasm.Instance(new wasm.Module(passedOn), { e: { f: write } }).exports['f'];
}

/**
 * The document as PDFium writes it anew: decrypted, each object by itself. Null where that is beyond all bounds, or
 * PDFium cannot write it.
 */
export function copyPdf(pdfium: Pdfium, document: number): Buffer | null {
  const parts: Buffer[] = [];
  let length = 0;
  const write: WriteBlock = (_self, address, size) => {
    length += size;
    if (length > maxCopyBytes) return 0;
    // Growing replaces the memory: what is there now is taken out of it.
    parts.push(Buffer.from(pdfium.HEAPU8.slice(address, address + size)));
    return 1;
  };
  // The types of the package leave it out.
  const saveAsCopy = Reflect.get(pdfium, '_FPDF_SaveAsCopy') as SaveAsCopy;
  // The module's own table has no room for more: the null function's entry, which nothing calls, stands in.
  const table = Reflect.get(pdfium.wasmExports, '__indirect_function_table') as WasmTable;
  // FPDF_FILEWRITE: a version, and the function.
  const writer = pdfium.wasmExports.malloc(8);
  if (writer === 0) throw new RangeError('PDFium has no memory for a copy of the document');
  pdfium.HEAP32.set([1, nullFunction], writer / 4);
  table.set(nullFunction, toWasmFunction(write));
  try {
    return saveAsCopy(document, writer, withoutSecurity) === 0 ? null : Buffer.concat(parts);
  } finally {
    table.set(nullFunction, null);
    pdfium.wasmExports.free(writer);
  }
}

/**
 * The same with another name in the place of each `/Count`. Where nodes of the page tree do not say how many pages they
 * have, PDFium counts their kids.
 */
export function hideCounts(copy: Buffer): Buffer {
  const name = Buffer.from('/Count');
  for (let at = copy.indexOf(name); at >= 0; at = copy.indexOf(name, at + name.length)) copy[at + 1] = 0x58;
  return copy;
}
