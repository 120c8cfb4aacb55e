/** A document that lists are sorted by. */
export interface ListedDocument {
  readonly _id: string;
  readonly createdAt: Date;
}

/** The sort of a list, newest first. An index on both fields has this order. */
export const newestFirst = { createdAt: -1, _id: -1 } as const;

/** Returns the filter for what comes after a document in such a list; for everything if it is null. */
export const isAfter = (after: ListedDocument | null) =>
  after === null
    ? {}
    : {
        createdAt: { $lte: after.createdAt },
        $or: [{ createdAt: { $lt: after.createdAt } }, { _id: { $lt: after._id } }],
      };
