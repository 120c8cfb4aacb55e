/** The product's own mark: a rounded square of 16 by 16 with a prompt in it. */
export const brandMark = { viewBox: '0 0 16 16', radius: 4, path: 'M4 5l3 3-3 3M9 11h3' } as const;
