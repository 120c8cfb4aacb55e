import { parse as parseUuid, stringify as stringifyUuid } from 'uuid';

/**
 * What a worker sends the api process that waits: `accepted` names the worker, `delta` carries bytes that are ready
 * for the socket, `result` and `error` end the request. A result that is large for a frame is `offered`, and sent as
 * `piece`s when it is asked for; one that is kept is `stored`. Kept frames that are in the object store left `moved`
 * behind. A `mark` belongs to no request: it asks the process to say that it has received everything before it.
 */
export const frameKinds = [
  'accepted',
  'delta',
  'progress',
  'result',
  'stored',
  'error',
  'offered',
  'piece',
  'moved',
  'mark',
] as const;
export type FrameKind = (typeof frameKinds)[number];

export interface FrameHeader {
  readonly requestId: string;
  /** Which dispatch of the request this answers: frames of an earlier one are stale. */
  readonly attempt: number;
  /** Counts the frames of one attempt from 0; a gap means that one was lost. */
  readonly sequence: number;
  readonly kind: FrameKind;
  /** Completion tokens generated so far: what a request is charged for if its worker dies now. */
  readonly tokens: number;
}

export interface Frame extends FrameHeader {
  readonly payload: Buffer;
}

/** length u32 (whole frame) · request id 16 bytes · attempt u16 · sequence u32 · kind u8 · tokens u32 · payload */
const headerLength = 31;

/** Where the kind is in a frame. */
export const kindOffset = 26;

/** A request's id as frames carry it: parsed once, written with every frame. */
export function packRequestId(requestId: string): Uint8Array {
  return parseUuid(requestId);
}

/** Header and payload apart, for a message that is put together from many frames with one copy. */
export function encodeHeader(
  packedId: Uint8Array,
  header: Omit<FrameHeader, 'requestId'>,
  payloadLength: number,
): Buffer {
  const bytes = Buffer.allocUnsafe(headerLength);
  bytes.writeUInt32LE(headerLength + payloadLength, 0);
  bytes.set(packedId, 4);
  bytes.writeUInt16LE(header.attempt, 20);
  bytes.writeUInt32LE(header.sequence, 22);
  bytes.writeUInt8(frameKinds.indexOf(header.kind), kindOffset);
  bytes.writeUInt32LE(header.tokens, 27);
  return bytes;
}

export function encodeFrame(frame: Frame): Buffer {
  const header = encodeHeader(packRequestId(frame.requestId), frame, frame.payload.length);
  return Buffer.concat([header, frame.payload]);
}

/** An offered result is cut into pieces of this size; only the last one is smaller. */
export const pieceBytes = 512 * 1024;

/** What an `offered` frame says: the length of the whole result. */
export const encodeOffer = (length: number): Buffer => {
  const bytes = Buffer.allocUnsafe(4);
  bytes.writeUInt32LE(length, 0);
  return bytes;
};

export const decodeOffer = (payload: Buffer): number => payload.readUInt32LE(0);

/** Of frames that belong to no request. */
const noRequest = new Uint8Array(16);

/** A `mark` frame: which worker it is from, and how many bytes that has sent to this channel. */
export function encodeMark(workerId: string, sentBytes: number): Buffer {
  const payload = Buffer.from(`${workerId} ${sentBytes}`);
  const header = { attempt: 0, sequence: 0, kind: 'mark', tokens: 0 } as const;
  return Buffer.concat([encodeHeader(noRequest, header, payload.length), payload]);
}

export function decodeMark(payload: Buffer): { readonly workerId: string; readonly sentBytes: number } {
  const [workerId = '', sentBytes = '0'] = payload.toString().split(' ');
  return { workerId, sentBytes: Number(sentBytes) };
}

/** The frames of one message, whose payloads are views into it. @throws RangeError when it is cut or malformed. */
export function decodeFrames(message: Buffer): Frame[] {
  const frames: Frame[] = [];
  let at = 0;
  while (at < message.length) {
    const first = decodeFirstFrame(message.subarray(at));
    if (first === null) throw new RangeError(`frame cut at byte ${at} of ${message.length}`);
    frames.push(first.frame);
    at += first.byteLength;
  }
  return frames;
}

/**
 * The frame that these bytes begin with, whose payload is a view into them; null where its end is missing.
 * @throws RangeError when it is malformed
 */
export function decodeFirstFrame(
  bytes: Buffer,
): { readonly frame: Frame; readonly byteLength: number } | null {
  if (bytes.length < headerLength) return null;
  const byteLength = bytes.readUInt32LE(0);
  const kind = frameKinds[bytes.readUInt8(kindOffset)];
  if (byteLength < headerLength || kind === undefined) throw new RangeError('malformed frame');
  if (byteLength > bytes.length) return null;
  const frame = {
    requestId: stringifyUuid(bytes.subarray(4, 20)),
    attempt: bytes.readUInt16LE(20),
    sequence: bytes.readUInt32LE(22),
    kind,
    tokens: bytes.readUInt32LE(27),
    payload: bytes.subarray(headerLength, byteLength),
  };
  return { frame, byteLength };
}
