/** The largest payload carried inside an item or a frame. Larger ones go through the payload store. */
export const maxInlineBytes = 64 * 1024;
