/** MongoDB's error codes, by code name. A `LocationNNNNN` name contains its code. */
const codes: Record<string, number> = {
  BadValue: 2,
  FailedToParse: 9,
  Unauthorized: 13,
  TypeMismatch: 14,
  Overflow: 15,
  ProtocolError: 17,
  AuthenticationFailed: 18,
  NamespaceNotFound: 26,
  IndexNotFound: 27,
  PathNotViable: 28,
  ConflictingUpdateOperators: 40,
  CursorNotFound: 43,
  MaxTimeMSExpired: 50,
  InvalidIdField: 53,
  NotSingleValueField: 54,
  EmptyFieldName: 56,
  CommandNotFound: 59,
  ImmutableField: 66,
  CannotCreateIndex: 67,
  InvalidOptions: 72,
  InvalidNamespace: 73,
  IndexOptionsConflict: 85,
  IndexKeySpecsConflict: 86,
  QueryPlanKilled: 175,
  TransactionTooOld: 225,
  NotImplemented: 238,
  OperationNotSupportedInTransaction: 263,
  MechanismUnavailable: 334,
  BSONObjectTooLarge: 10334,
  DuplicateKey: 11000,
  OutOfDiskSpace: 14031,
  KeyTooLong: 17280,
};

/** An error that is sent to the client as MongoDB would send it. Any other error is a bug in this server. */
export class MongoError extends Error {
  readonly codeName: string;
  readonly code: number;
  readonly details: Record<string, unknown>;

  constructor(codeName: string, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.codeName = codeName;
    this.code = codes[codeName] ?? Number(codeName.slice('Location'.length));
    this.details = details;
  }
}

/** Returns the error for a feature of MongoDB that this server lacks. It fails instead of approximating a result. */
export function unsupported(feature: string, codeName = 'NotImplemented'): MongoError {
  return new MongoError(codeName, `${feature} is not supported by the embedded MongoDB; set MONGODB_URL`);
}
