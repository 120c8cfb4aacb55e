/** What models are for, in the order in which they are listed. */
export const modelTypes = ['chat', 'vision', 'image', 'embedding'] as const;
