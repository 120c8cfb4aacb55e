/** The largest payload carried inside a queue item or a frame. Larger ones are stored separately. */
export const maxInlineBytes = 64 * 1024;
