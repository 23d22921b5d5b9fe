export function tables(): Record<string, string>;
